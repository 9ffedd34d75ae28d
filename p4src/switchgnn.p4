// SwitchGNN for v1model: the main file of the product's program. The strawman and the
// benchmark's baseline (strawman/strawman.p4, ../bench/p4/plain.p4) are main files with banks of
// their own.
#include "banks.p4"
#include "pipeline.p4"
