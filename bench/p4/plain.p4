// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// What the product is measured against: its program with other banks.
// ../../p4src/switchgnn.p4 is the product's main file.
#include <core.p4>
#include <v1model.p4>

// All slots are in one bank.
#define SLOT_BITS 24
#include "../../p4src/sum.p4"
#include "plain_banks.p4"
#include "../../p4src/parser.p4"
#include "../../p4src/checksum.p4"
#include "../../p4src/ingress.p4"
#include "../../p4src/egress.p4"

V1Switch(SwitchParser(),
         VerifyChecksums(),
         SwitchIngress(),
         SwitchEgress(),
         ComputeChecksums(),
         SwitchDeparser()) main;
