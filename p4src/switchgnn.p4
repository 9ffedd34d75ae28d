// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// SwitchGNN for v1model: the main file of the product's program. The strawman and the
// benchmark's baseline (strawman/strawman.p4, ../bench/p4/plain.p4) are main files with a sum or
// banks of their own. The other files are shared and use `sum_t`, `Sum` and `Banks` without
// including them.
#include <core.p4>
#include <v1model.p4>

#include "sum.p4"
#include "banks.p4"
#include "parser.p4"
#include "checksum.p4"
#include "ingress.p4"
#include "egress.p4"

V1Switch(SwitchParser(),
         VerifyChecksums(),
         SwitchIngress(),
         SwitchEgress(),
         ComputeChecksums(),
         SwitchDeparser()) main;
