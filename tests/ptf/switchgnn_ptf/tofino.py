"""The cases that do not apply to the Tofino program, by the reason."""

TOFINO = "tofino"  # the setting
_REASONS = {
    "It has no bundles.": """
        bundle.ABundleFromAboveGoesToItsWorker bundle.AMarkWaitsOnTheShelf bundle.APartGoesUpAlone
        bundle.ASpinePacksSumsOfItsWorkers bundle.ASumOnTheShelfIsRecalledAlone bundle.RowsMeet
        job.BundlesAreSeparate""",
    "Its lanes have 32 bits.": """
        narrow.ANarrowFeatureGoesAround narrow.APartGoesUpNarrow
        narrow.ASumOfZerosHasNoBody narrow.EveryBankDecides narrow.NoSuchBits narrow.RecallAsks
        narrow.TheBodyHoldsTheWholeRange narrow.TheFewestBitsThatHoldTheSum narrow.TheTrailerStays
        narrow.WideAndNarrowMeetInOneSlot""",
    "The copy that sums on is another one than that which leaves.": "congestion.SumIsMarked",
    "The strawman is another program.": """
        narrow.TheStrawmanWidensToo shared.AFetchGivesTheSlotToOthers shared.AnOldSlotIsTakenOver
        shared.ANewerTagTakesTheSlotOfItsJob shared.ASlotIsOwnedInLaterPassesToo
        shared.ASlotServesOneJobAfterTheOther shelf.AMarkIsKeptWithTheSlot
        shelf.EveryBankHasItsOwnSlots shelf.FetchGivesTheSlotBack shelf.FirstComeFirstServed
        shelf.LastContributionAloneIsASumOfOne shelf.RecallTellsWhatWasSeen
        shelf.SlotIsGivenBackWithTheSum shelf.StaleContributionChangesNothing""",
}
DOES_NOT_APPLY = {case: reason for reason, cases in _REASONS.items() for case in cases.split()}
