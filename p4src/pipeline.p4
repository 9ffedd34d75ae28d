// What all programs share: a main file includes its own `Banks` before this.
#pragma once

#include "parser.p4"
#include "ingress.p4"
#include "egress.p4"

V1Switch(SwitchParser(),
         VerifyChecksums(),
         SwitchIngress(),
         SwitchEgress(),
         ComputeChecksums(),
         SwitchDeparser()) main;
