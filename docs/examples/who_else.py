"""A dataset turns out to be bad: which answers rest on it? Run it: python who_else.py

The first run makes a dataset and a total from it; a second one of the same conversation uses the total. The question is asked of the
log alone, in SQL: `descendants(ref)` is everything made from an artifact, however many steps away.
"""

from refledger import Ledger, Scope

QUESTION = """
SELECT DISTINCT answers.answer_id, answers.verdict
FROM answers
WHERE list_has_any(list_concat(cited, found), (SELECT list_append(list(ref), $bad) FROM descendants($bad)))
ORDER BY answers.answer_id
"""


def main() -> None:
    with Ledger.open("shared.db") as ledger:
        scope = Scope(conversation="shared")
        with ledger.run(scope, agent="first") as run:
            with run.call("get_prices") as call:
                prices = call.put([3, 4, 5], kind="dataset/prices", label="prices, unchecked")
            with run.call("total", args={"prices": prices.ref}) as call:
                outcome = call.resolve({"prices": "dataset/prices"})
                total = call.put(sum(outcome.args["prices"]) if outcome.ok else 0, kind="number/total")
            run.answer(f"The total is 12, see {total.ref}.", answer_id="first-answer")
        with ledger.run(scope, agent="second") as run:
            run.answer("Twelve, as was said before.", cites=[total.ref], answer_id="second-answer")
        with ledger.run(scope, agent="third") as run:
            run.answer("No prices were looked at here.", answer_id="third-answer")
        for answer_id, verdict in ledger.sql(QUESTION, {"bad": prices.ref}).rows:
            print(answer_id, verdict or "unjudged")


if __name__ == "__main__":
    main()
