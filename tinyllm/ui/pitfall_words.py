"""What each pitfall is called and what goes wrong in it, for people."""

from tinyllm.ui.text import _

# Name in experiments/pitfalls -> title, what is done wrong, and what that leads to.
WORDS: dict[str, tuple[str, str]] = {
    "cache-overflow": (
        _("More tokens than the cache has room for"),
        _(
            "The slice at the end of the cache is shorter than what is written into it, and the "
            "error speaks of shapes, not of room."
        ),
    ),
    "position-overflow": (
        _("More tokens than the model has positions"),
        _(
            "The position table ends before the text does, and the error names two shapes of "
            "which neither was chosen by the caller."
        ),
    ),
    "unnormalised-p": (
        _("A draw from what does not sum to one"),
        _(
            "The residual max(0, p - q) is not divided by its sum. A strict draw refuses it; one "
            "over cumulated sums gives the whole shortfall to the last token."
        ),
    ),
    "forgotten-truncate": (
        _("Refused proposals left in the cache"),
        _(
            "Without a rewind the next call attends to tokens that were never said, and stands "
            "at later positions than it should."
        ),
    ),
    "no-causal-mask": (
        _("Verification without a causal mask"),
        _(
            "Every proposal sees the ones behind it, so the target judges a token by what "
            "follows it."
        ),
    ),
    "argmax-proposal": (
        _("The likeliest token proposed, tested against the whole q"),
        _(
            "The rule believes the proposal was drawn from q. A certain proposal has a q of one "
            "for that token; then 3/5 would be accepted here and the law would be p."
        ),
    ),
    "softmax-residual": (
        _("The residual through a softmax"),
        _("A softmax gives probability to tokens whose residual is zero, and flattens the rest."),
    ),
    "target-after-refusal": (
        _("Drawing from p after a refusal"),
        _("What the drafter likes has had its chance already, and now gets a second one."),
    ),
    "filter-on-the-draw-only": (
        _("top-k on the draw, not in the ratio"),
        _(
            "The proposal comes from a filtered q and is tested against the unfiltered one, "
            "which is smaller, so too much is accepted."
        ),
    ),
    "temperature-on-the-draw-only": (
        _("Temperature on the draw, not in the ratio"),
        _("Draw and ratio must use the same array; here the proposals come from a sharper one."),
    ),
    "token-zero-is-nothing": (
        _("Token 0 taken for no token"),
        _("`if token` is false for the first symbol, so a proposal of it is never accepted."),
    ),
    "empty-residual": (
        _("Dividing an empty residual"),
        _(
            "p and q that agree but for a rounding can still refuse a token, once in very many "
            "rounds; nothing is left to draw from then, and 0/0 is not a number."
        ),
    ),
    "counts-behind-refusal": (
        _("Counting accepted proposals behind a refusal"),
        _("A proposal behind a refused one continues a text that does not exist."),
    ),
    "draft-lacks-last-proposal": (
        _("The draft never fed its own last proposal"),
        _(
            "After full acceptance the last proposal is committed and the draft's cache lacks "
            "it. The text stays right; acceptance falls, and with it the speed."
        ),
    ),
    "idle-rounds-skip-draft": (
        _("Rounds without proposals that skip the draft"),
        _("A round of k = 0 also adds a token. A draft that is not told goes on one place short."),
    ),
    "stop-inside-a-round": (
        _("A stop token inside an accepted block"),
        _("Only the last token of a round is looked at, and the text runs on past its end."),
    ),
    "length-before-stop": (
        _("The length asked before the stop token"),
        _("A text that ends properly on its last allowed token is reported as cut off."),
    ),
    "rollback-one-too-far": (
        _("A rollback one token too far"),
        _(
            "The call fed the last token and then the proposals; keeping as many rows as were "
            "accepted drops one that was committed."
        ),
    ),
    "whole-prompt-reused": (
        _("A prompt that is wholly in the cache"),
        _("Nothing is left to compute, so there are no logits to draw the first token from."),
    ),
    "refused-in-the-index": (
        _("Refused tokens in the prefix index"),
        _(
            "The index promises rows for a text that was refused; by then the rows hold another "
            "token's keys and values."
        ),
    ),
    "leaked-blocks": (
        _("Blocks lost on refusal and abort"),
        _(
            "Lengths shrink and blocks stay taken. Free and used blocks no longer come to all, "
            "and in the end no request fits."
        ),
    ),
    "outlier-key-channel": (
        _("One scale for a key with an outlier channel"),
        _(
            "The outlier sets the scale and the other channels round to nothing. The mean-square "
            "error looks fine, as the outlier dominates it; the loss does not."
        ),
    ),
    "widths-round-differently": (
        _("Logits of two widths compared bit by bit"),
        _(
            "A call of several tokens adds up in another order than calls of one. That is "
            "rounding; only a decision that changes without a near tie would be a bug."
        ),
    ),
    "vocabulary-of-one": (
        _("top-k larger than the vocabulary"),
        _("The k-th largest of fewer than k logits does not exist."),
    ),
}
