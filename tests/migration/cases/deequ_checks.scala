import com.amazon.deequ.checks.{Check, CheckLevel}

val checks = Seq(
  Check(CheckLevel.Error, "orders && lines")
    .isComplete("id") // the key
    .isUnique("id")
    .hasSize(_ >= 3)
    .hasMin("amount", _ >= 0.0d)
    .hasCompleteness("mail", share => share >= 0.6 && share < 0.8, Some("known"))
    .isContainedIn("status", Array("open", "paid && closed"), _ >= 0.9)
    .isContainedIn("amount", 0, 1000)
    .hasPattern("zip", """\d{5}""".r)
    .satisfies("amount > 0 && tax > 0", "positive", (x: Double) => x > 0.5)
    .hasMean("amount", x => math.abs(x) < 5),
  Check(CheckLevel.Warning, "soft").isNonNegative("tax").where("status = 'paid'")
)
