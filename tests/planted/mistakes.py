"""Mistakes in the product that the slow groups find, and what finds them in `make test`."""

import re
from dataclasses import dataclass

E2E = "tests/end_to_end"
TRAIN = f"{E2E}/test_train.py"
LEFTOVERS = f"{E2E}/test_leftovers.py"
LEAF_SPINE = f"{E2E}/test_leaf_spine.py"
RUN = f"{E2E}/test_run.py"
MININET = f"{E2E}/test_mininet.py"
BAD_INPUT = f"{E2E}/test_bad_input.py"
CAPTURE = f"{E2E}/test_capture.py"
LIVE = f"{E2E}/test_live.py"
PTF = "tests/ptf/test_ptf.py"
MACHINE = "tests/training/exchange/test_machine.py"
BUCKETS = "tests/training/test_buckets.py"
CHECKPOINT = "tests/training/test_checkpoint.py"
LAYERS = "tests/training/layers/test_layers.py"
USES = "tests/training/layers/test_uses.py"
CONVOLUTIONS = "tests/training/layers/test_convolutions.py"
NORMS = "tests/training/layers/test_norms.py"
RUNNER = "tests/experiments/test_runner.py"
STRAWMAN = "tests/strawman/test_sums.py"
PRIORITY = "tests/recovery/test_priority.py"
EXCHANGE = "tests/host/innetwork/test_exchange.py"
TIMEOUTS = "tests/host/innetwork/test_timeouts.py"
COMPRESSED = "tests/host/innetwork/test_compressed.py"
DIRECT = "tests/host/direct/test_faults.py"
FRAMING = "tests/host/direct/test_framing.py"
FAST_PATH = "tests/host/innetwork/test_fast_path.py"
ADMISSION, JOBS, WATCH = (f"tests/controller/test_{it}.py" for it in ("admission", "jobs", "watch"))
ROW_FAST_PATH = "tests/host/direct/test_fast_path.py"


@dataclass(frozen=True)
class Mistake:
    """A mistake, and the tests of `make test` that must fail with it."""

    what: str  # in a few words, without a full stop
    file: str  # of the product
    old: str  # what stands there, exactly once
    new: str  # what stands there with the mistake
    # node ids; each alone notices it, where the machine has what it needs
    noticed_by: tuple[str, ...]

    @property
    def name(self):
        """The words for `pytest -k`."""
        return re.sub(r"\W+", "_", self.what)


MISTAKES = (
    Mistake(
        "layers leave out the neighbours on other workers",
        "switchgnn/training/exchange/sums.py",
        "return local().add_(self._received(",
        "return local().add_(0 * self._received(",
        (f"{TRAIN}::test_a_model_of_ones_own_trains_like_one_process",),
    ),
    Mistake(
        "gradients go along the edges, in place of against them",
        "switchgnn/training/exchange/sums.py",
        "return with_adjoint(rows, there, back)",
        "return with_adjoint(rows, there, there)",
        (f"{LAYERS}::test_a_layer_on_partitions_is_the_layer_on_the_whole[gcn-3-directed]",),
    ),
    Mistake(
        "second derivatives leave out other workers",
        "switchgnn/training/exchange/sums.py",
        "return with_adjoint(gradient, back, there), None, None",
        "return back(gradient), None, None",
        (f"{USES}::test_the_result_is_that_of_one_process[second derivatives]",),
    ),
    Mistake(
        "copies have the rows of the step before the last",
        "switchgnn/training/layers/copied.py",
        "        self._stale = True\n",
        "",
        (f"{CONVOLUTIONS}::test_a_convolution_over_copies_or_sums_is_exact[SGConv]",),
    ),
    Mistake(
        "partial sums leave out the edge weights",
        "switchgnn/training/layers/models.py",
        "LocalSum(part.partial, shape, part.partial_weights)",
        "LocalSum(part.partial, shape)",
        (f"{LAYERS}::test_weights_of_edges_count_as_on_the_whole[graph-any-3-directed]",),
    ),
    Mistake(
        "within a machine gradients go along the edges, in place of against them",
        "switchgnn/training/exchange/machine.py",
        "partition.beside[::step]",
        "partition.beside[:: step * step]",
        (f"{MACHINE}::test_sums_are_those_over_all_other_workers",),
    ),
    Mistake(
        "of the gradients of a row's copies only one comes back",
        "host/direct/transport.py",
        "return found if forward else schedule.send.transposed().apply(found)",
        "return found if forward else found[: self.vertices]",
        (f"{LAYERS}::test_a_layer_on_partitions_is_the_layer_on_the_whole[gat model-3-directed]",),
    ),
    Mistake(
        "gradients of a mean over all vertices stay on their worker",
        "switchgnn/training/layers/norms.py",
        "with_adjoint(flat, self._added, self._added)",
        "with_adjoint(flat, self._added, Tensor.clone)",
        (f"{NORMS}::test_several_workers_train_as_one_process[graph]",),
    ),
    Mistake(
        "a training that goes on drops what its first epochs have dropped",
        "switchgnn/training/layers/dropout.py",
        "self.epoch, self._calls = epoch, 0",
        "self.epoch, self._calls = self.epoch + 1, 0",
        (f"{TRAIN}::test_a_training_goes_on_where_it_stopped[False]",),
    ),
    Mistake(
        "a training that goes on forgets what Adam has remembered",
        "switchgnn/training/checkpoint.py",
        '{"state": of_parameters, "param_groups": options}',
        '{"state": {}, "param_groups": options}',
        (f"{CHECKPOINT}::test_another_number_of_workers_goes_on_as_if_never_interrupted[1-3]",),
    ),
    Mistake(
        "the weights that are saved lack the last step",
        "switchgnn/training/buckets.py",
        "            self._optimizer.step()\n            if self._hooks:\n",
        '            self._left = getattr(self, "_left", 8) - 1\n'
        "            if self._left:\n"
        "                self._optimizer.step()\n"
        "            if self._hooks:\n",
        ("tests/training/test_oracle.py::test_many_workers_train_like_one[gcn-1]",),
    ),
    Mistake(
        "a layer uses weights whose bucket of gradients is still under way",
        "switchgnn/training/buckets.py",
        "forward.before_weights = wait",
        "forward.before_weights = bool",
        (f"{BUCKETS}::test_buckets_change_no_sum_and_wait_for_the_layer_that_needs_them[GCN]",),
    ),
    Mistake(
        "a worker that is forked lacks the variables of its order, as its rank",
        "topologies/forkserver.py",
        '        os.environ.update(order["environment"])\n',
        "",
        (f"{TRAIN}::test_the_best_strategies_train_like_one_process[embedded-mininet]",),
    ),
    Mistake(
        "a switch is not tied to the process that has started it",
        "topologies/forkserver.py",
        "libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)",
        "libc.prctl(_PR_SET_PDEATHSIG, 0)",
        (f"{LEFTOVERS}::test_nothing_is_left[embedded-loopback-exchanging-SIGKILL]",),
    ),
    Mistake(
        "SIGTERM ends a run without cleaning up",
        "switchgnn/base/interruptible.py",
        "(signal.SIGTERM, signal.SIGHUP)",
        "(signal.SIGHUP,)",
        (f"{LEFTOVERS}::test_nothing_is_left[embedded-loopback-installing-SIGTERM]",),
    ),
    Mistake(
        "the links of Mininet are not taken down at the end of a run",
        "topologies/mininet_fabric.py",
        "_end(host)",
        "pass",
        (
            "tests/topologies/test_mininet_fabric.py::"
            "test_a_network_ends_though_a_command_was_interrupted[read]",
        ),
    ),
    Mistake(
        "a training that is interrupted does not show what it has reached",
        "switchgnn/commands/train/display.py",
        "self._show_reached()",
        "pass",
        (f"{LEFTOVERS}::test_ctrl_c_shows_what_a_training_has_reached",),
    ),
    Mistake(
        "a training on leaves and spines is partitioned as for a star",
        "switchgnn/jobs/train.py",
        "return PlanContext(self.workers, self.slots, leaf_spine=self.leaf_spine)",
        "return PlanContext(self.workers, self.slots)",
        (f"{LEAF_SPINE}::test_the_partition_knows_the_leaves[train]",),
    ),
    Mistake(
        "of a worker's rows for one maximum, the sum is sent",
        "host/innetwork/outgoing.py",
        "schedule.payloads(lanes, combine_of(fragment))",
        "schedule.payloads(lanes)",
        (f"{EXCHANGE}::test_maxima_and_minima_are_to_the_bit[plain-cover]",),
    ),
    Mistake(
        "a spine packs the sums of all workers of a leaf into the same bundles",
        "controller/controls/loop.py",
        "worker = switch.result_worker if part is None else part.result_owner",
        "worker = switch.result_worker",
        (f"{LEAF_SPINE}::test_every_sum_is_exact[embedded-loopback-bundles]",),
    ),
    Mistake(
        "faults are injected on the links of workers, but not on cables",
        "topologies/fabric.py",
        'cable_faults if topology.cables else ""',
        '""',
        (f"{LEAF_SPINE}::test_faults_on_links_and_cables[embedded-loopback-]",),
    ),
    Mistake(
        "the partial sums that are reported are what leaves have added",
        "switchgnn/jobs/report.py",
        "spines = slice(parts.leaf_spine.leaves, None)",
        "spines = slice(parts.leaf_spine.leaves)",
        (f"{LEAF_SPINE}::test_every_sum_is_exact[embedded-loopback-7]",),
    ),
    Mistake(
        "the last of several fragments of a row is not exchanged",
        "host/innetwork/round.py",
        "for word in words for block in blocks]",
        "for word in words[: max(1, len(words) - 1)] for block in blocks]",
        ("tests/virtual/test_runs.py::test_every_width_sums_exactly[32]",),
    ),
    Mistake(
        "a worker without remote neighbours fails, as one alone",
        "switchgnn/jobs/reference.py",
        "fan_in = max(1, over_switch)",
        "fan_in = over_switch",
        (f"{RUN}::test_any_number_of_workers[embedded-loopback-1]",),
    ),
    Mistake(
        "the bytes of a worker are counted at both ends of its link",
        "switchgnn/jobs/run.py",
        "bytes_up=wire.up,",
        "bytes_up=wire.up + wire.down,",
        (f"{RUN}::test_any_number_of_workers[embedded-loopback-3]",),
    ),
    Mistake(
        "the switch marks from its own threshold, not from the one that is asked for",
        "switchgnn/jobs/runner.py",
        "DesiredStates(workers.program, job.ecn_threshold, job.queue)",
        "DesiredStates(workers.program, queue=job.queue)",
        (
            f"{MININET}::test_sums_are_exact_beside_tcp_over_leaves_and_spines"
            "[embedded-mininet-cables.loss=0.02,seed=3]",
        ),
    ),
    Mistake(
        "the bytes of background flows are reported as the exchange's",
        "switchgnn/jobs/runner.py",
        "wires = cables = None",
        "cables = None",
        (f"{MININET}::test_sums_are_exact_beside_tcp[embedded-mininet-heeding]",),
    ),
    Mistake(
        "folders that are to be written are not looked at before the work",
        "switchgnn/commands/shared/outputs.py",
        "    if not parent.is_dir():\n",
        "    if inside:\n        return\n    if not parent.is_dir():\n",
        (
            "tests/commands/test_outputs.py::TestEveryKind::"
            "test_a_folder_that_is_not_there_is_named_and_not_made[folders]",
        ),
    ),
    Mistake(
        "of the frames that arrive together only those behind the first ones are kept",
        "host/links/recording.py",
        "range(batch.first, batch.count)",
        "range(batch.first + 1, batch.count)",
        (f"{CAPTURE}::test_every_frame_is_in_the_files",),
    ),
    Mistake(
        "the summary takes a feature that comes again for another one",
        "switchgnn/capture/summary.py",
        "if feature in self._seen:",
        "if not feature:",
        (f"{CAPTURE}::test_the_story_is_the_plan[embedded-loopback-loss=0.05,seed=3]",),
    ),
    Mistake(
        "the page takes the metrics of any worker for those of the one that was asked",
        "host/metrics.py",
        "if labels.get(_OWNER) != str(worker):",
        "if _OWNER not in labels:",
        ("tests/host/test_metrics.py::test_what_is_told_is_what_is_there",),
    ),
    Mistake(
        "the page shows another session as if the one before went on",
        "switchgnn/live/polling.py",
        "            begin()\n",
        "",
        ("tests/live/test_machines.py::test_a_switch_that_is_gone_and_back_and_another_session",),
    ),
    Mistake(
        "a packet recirculates with its old bytes though a header has changed",
        "switchgnn/softswitch/native/source.py",
        '" state.changed = true;" if variable in self._headers else ""',
        '""',
        (
            "tests/softswitch/test_programs.py"
            "::test_a_packet_whose_headers_stay_recirculates_as_it_is[native-12-6-22]",
        ),
    ),
    Mistake(
        "the embedded switch finds every checksum right",
        "switchgnn/softswitch/lowering/program.py",
        "ctx.set(var.WRONG_CHECKSUM, constant(1))",
        "ctx.set(var.WRONG_CHECKSUM, constant(0))",
        (f"{PTF}::test_case[embedded-udp-checksum.EveryByteOfAFeatureIsChecked]",),
    ),
    Mistake(
        "results of points that differ in the width of features take each other's place",
        "switchgnn/lab/experiments/point.py",
        "{_digest(asdict(self))}",
        "{_digest(asdict(self) | dict(features=0))}",
        (f"{RUNNER}::test_another_parameter_is_another_result[change1]",),
    ),
    Mistake(
        "a sum that does not come is never asked for",
        "host/innetwork/receiver.py",
        "        self._ask_some(_MOST_UNANSWERED if self._lossy or still or few else 1)\n"
        "        return True\n",
        "        return True\n",
        (f"{EXCHANGE}::test_lost_features_and_sums_are_repaired[1-multicast-7-2]",),
    ),
    Mistake(
        "a worker answers fetches with the rows of the round before",
        "host/innetwork/responder.py",
        "        self._round, self._units, self._contribution = number, units, contribution\n",
        "        self._contribution = contribution if self._round == 0 else self._next\n"
        "        self._next = contribution\n"
        "        self._round, self._units = number, units\n",
        (f"{EXCHANGE}::test_a_fetched_feature_serves_every_sum_that_needs_it",),
    ),
    Mistake(
        "a change that was too small to send counts as sent",
        "switchgnn/host/innetwork/outgoing.py",
        "np.where(moved[:, np.newaxis], rows, sent)",
        "rows",
        (f"{COMPRESSED}::test_sums_are_those_of_what_was_sent_bit_for_bit[30]",),
    ),
    Mistake(
        "each row of a partial sum is fetched with the change of the whole",
        "switchgnn/host/innetwork/outgoing.py",
        "lanes[frame] if row == first else np.zeros_like(lanes[frame])",
        "lanes[frame]",
        (f"{COMPRESSED}::test_sums_that_the_switch_has_lost_are_fetched_change_by_change",),
    ),
    Mistake(
        "a switch that restarts is not given its plan again",
        "controller/watch.py",
        "self._restore()",
        "pass",
        (f"{WATCH}::test_a_switch_that_is_away_for_a_while_is_waited_for",),
    ),
    Mistake(
        "who waits in vain names those that are done",
        "host/base/heartbeat.py",
        "if not done >> worker & 1",
        "if done >> worker & 1",
        (f"{TIMEOUTS}::TestSigns::test_who_is_done_is_not_awaited",),
    ),
    Mistake(
        "who is through does not repeat that it was done",
        "host/innetwork/barrier.py",
        "if meeting is not None and meeting.answer is not None:",
        "if meeting is not None and meeting.magnitude < 0:",
        (f"{EXCHANGE}::test_who_was_told_to_go_on_says_done_again",),
    ),
    Mistake(
        "in the embedded switch packets of higher classes wait behind sums",
        "switchgnn/softswitch/native/runtime/ports.h",
        "last = CLASSES - 1;",
        "last = lowest;",
        (f"{PRIORITY}::test_acknowledgements_overtake_sums",),
    ),
    Mistake(
        "in the embedded switch a higher class may take the whole line",
        "switchgnn/softswitch/native/runtime/ports.h",
        " || credits[last] <= 0",
        "",
        (f"{PRIORITY}::test_a_flood_of_notices_takes_a_tenth_of_the_sums_of_others",),
    ),
    Mistake(
        "features that found no slot are not added",
        "host/strawman.py",
        "sum((self._features[source] for source in overflowed), part.lanes)",
        "part.lanes",
        (f"{STRAWMAN}::test_every_sum_is_exact[embedded-8]",),
    ),
    Mistake(
        "the mark of frames between hosts does not cover the MTU",
        "host/direct/transport.py",
        "if framing.packed:",
        "if framing.packed and False:",
        (f"{FRAMING}::test_workers_that_differ_do_not_add_up[1501]",),
    ),
    Mistake(
        "between hosts no checksum is compared",
        "host/direct/frames.py",
        "if frame_checksum(frame, size) != checksum or ",
        "if ",
        (f"{DIRECT}::test_every_sum_is_right[corrupt=0.1-190-False-0]",),
    ),
    Mistake(
        "native code takes sums that are not complete",
        "host/wire/native/sums.h",
        " || counts[low] != f.count) return false;",
        ") return false;",
        (f"{FAST_PATH}::test_the_fast_path_changes_nothing",),
    ),
    Mistake(
        "native code takes rows of workers with another schedule",
        "host/wire/native/rows.h",
        " || f.destination != mark) return false;",
        ") return false;",
        (f"{ROW_FAST_PATH}::test_the_fast_path_changes_nothing",),
    ),
    Mistake(
        "a worker takes sums of other rounds and blocks",
        "host/innetwork/units.py",
        "if unit.unit == header.unit)",
        "if unit.unit.order >= header.unit.order)",
        (f"{EXCHANGE}::test_sums_of_earlier_rounds_are_not_taken",),
    ),
    Mistake(
        "a worker does not notice that a block was summed at another scale",
        "host/innetwork/barrier.py",
        "if answer.round == unit.round and answer.magnitude != self._magnitude:",
        "if answer.magnitude < 0:",
        ("tests/host/innetwork/test_refusals.py::test_a_block_at_another_scale_is_noticed",),
    ),
    Mistake(
        "all rows of a bundle get the numbers of its first one",
        "host/wire/native/sums.h",
        "from + row * row_bytes, row_bytes);",
        "from, row_bytes);",
        (f"{FAST_PATH}::test_a_bundle_that_is_plainly_right_is_taken",),
    ),
    Mistake(
        "two jobs share a slot",
        "controller/admission.py",
        "begin = first + count",
        "begin = first + count - 1",
        (f"{ADMISSION}::test_jobs_get_the_lowest_free_ranges_or_are_refused[0]",),
    ),
    Mistake(
        "a job takes a session that another one has had",
        "controller/install.py",
        "number = max(target.newest_session for target in team.targets) + 1",
        "number = max(entry.session for entry in present) + 1",
        (f"{JOBS}::test_sessions_grow_over_all_jobs",),
    ),
    Mistake(
        "a job that moves keeps its session",
        "controller/target.py",
        "sessions.get(place.job, NO_SESSION) if place in self.jobs else NO_SESSION",
        "sessions.get(place.job, NO_SESSION)",
        (f"{JOBS}::test_a_job_that_moves_takes_a_new_session",),
    ),
    Mistake(
        "who sends partial sums of a job is noted for blocks of another",
        "controller/controls/access.py",
        '"block_id": switch.result_block[awaiting] + np.int64(place.first_block)',
        '"block_id": switch.result_block[awaiting]',
        (f"{JOBS}::test_entries_move_with_the_place_of_a_job_and_belong_to_it[star]",),
    ),
    Mistake(
        "the ports of the loop belong to no job",
        "controller/controls/job.py",
        "[*place.ports, *place.loop_ports]",
        "[*place.ports]",
        (
            f"{JOBS}::test_entries_move_with_the_place_of_a_job_and_belong_to_it[leaf]",
            f"{JOBS}::test_a_job_comes_and_goes_beside_another",
        ),
    ),
    Mistake(
        "a failed install ends the sessions of all jobs for a moment",
        "controller/target.py",
        "change_between(self._layout, present, self._before, self._job)",
        "change_between(self._layout, present, self._before)",
        (f"{JOBS}::test_a_failed_replacement_restores_the_job_alone",),
    ),
    Mistake(
        "a watch forgets what other controllers install",
        "controller/watch.py",
        "self._keep(observer)",
        "pass",
        (f"{WATCH}::test_a_job_that_another_controller_installs_comes_back_too",),
    ),
    Mistake(
        "the controller installs entries without their rows",
        "controller/controls/fanout.py",
        'values[f"row{bank}"] = rows[:, bank]',
        'values[f"row{bank}"] = 0 * rows[:, bank]',
        ("tests/recovery/test_faults.py::test_partial_sums_are_exact[star-embedded-4]",),
    ),
    Mistake(
        "the checksum of what the switch sends is not compared",
        "host/wire/header.py",
        "return header if frame_checksum(frame, size) == checksum else None",
        "return header if frame_checksum(frame, size) >= 0 else None",
        ("tests/host/wire/test_header.py::test_a_flipped_bit_is_noticed",),
    ),
)
