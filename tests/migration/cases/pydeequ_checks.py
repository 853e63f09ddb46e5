from pydeequ.checks import Check, CheckLevel
from pydeequ.verification import VerificationSuite

check = Check(spark, CheckLevel.Warning, "Orders")
result = (
    VerificationSuite(spark)
    .onData(df)
    .addCheck(
        Check(spark, CheckLevel.Error, "Orders")
        .hasSize(lambda x: x >= 3)
        .hasMin("amount", lambda x: 0 <= x <= 5)
        .isContainedIn("status", ["open", "paid"])
        .hasPattern("email", r"^.+@.+$").where("country = 'CH'")
        .satisfies("amount >= tax", "tax is part", lambda x: x == 1.0)
        .isLessThan("tax", "amount")
        .hasMean("amount", lambda x: x > limit)
        .hasEntropy("status", lambda x: x > 0.5)
    )
    .run()
)
