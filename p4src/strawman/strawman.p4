// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The strawman of the paper's section 2.3.2: the product's program (../switchgnn.p4) with
// another sum, and banks that allocate their slots themselves.
#include <core.p4>
#include <v1model.p4>

// Bits of a destination's number in its bank.
#define SLOT_BITS 24
#include "sum.p4"
#include "banks.p4"
#include "../parser.p4"
#include "../checksum.p4"
#include "../ingress.p4"
#include "../egress.p4"

V1Switch(SwitchParser(),
         VerifyChecksums(),
         SwitchIngress(),
         SwitchEgress(),
         ComputeChecksums(),
         SwitchDeparser()) main;
