// The strawman of the paper's section 2.3.2: the product's program (../switchgnn.p4) with banks
// that allocate their slots themselves.
#define STRAWMAN
// Bits of a destination's number in its bank.
#define SLOT_BITS 24
#include "banks.p4"
#include "../pipeline.p4"
