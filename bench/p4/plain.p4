// SPDX-FileCopyrightText: 2026 The SwitchGNN authors
// SPDX-License-Identifier: Apache-2.0

// The baseline of figure `banks`: the product's program (../../p4src/switchgnn.p4) with other
// banks.
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
