// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The strawman of the paper's section 2.3.2: the product's program with another sum and
// other banks, which hand their slots out themselves. ../switchgnn.p4 is the product's
// main file.
#include <core.p4>
#include <v1model.p4>

// Of a destination's number in its bank.
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
