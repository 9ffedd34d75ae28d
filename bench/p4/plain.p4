// The baseline of figure `banks`: the product's program (../../p4src/switchgnn.p4) with other
// banks.
// All slots are in one bank.
#define SLOT_BITS 24
#include "plain_banks.p4"
#include "../../p4src/pipeline.p4"
