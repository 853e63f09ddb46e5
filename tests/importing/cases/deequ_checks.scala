import com.amazon.deequ.checks.{Check, CheckLevel}

val checks = Seq(
  Check(CheckLevel.Error, "orders && lines")
    .isComplete("id") // the key
    // 'id' should not be "twice" (a bracket
    .isUnique("id") /* nor this ) */
    .hasDistinctness(Seq("id"), _ == 3.0 / 5)
    .isContainedIn("tax", 0, 7, includeLowerBound = false)
    .customSql("SELECT COUNT(*) FROM primary WHERE tax > 0", _ == 6.0)
    .hasSize(_ >= 3)
    .hasMin("amount", _ >= 0.0d)
    .hasCompleteness("mail", share => share >= 0.6 && share < 0.8, Some("known"))
    .isContainedIn("status", Array("open", "paid && closed"), _ >= 0.9)
    .isContainedIn("amount", 0, 1000)
    .hasPattern("zip", """\d{5}""".r)
    .satisfies("amount > 0 && tax > 0", "positive", (x: Double) => x > 0.5)
    .hasUniqueness(Seq("id", "tax"), Check.IsOne)
    .doesDatasetMatch(other, Map("id" -> "id"), _ >= 0.9)
    .hasMean("amount", x => math.abs(x) < 5),
  Check(CheckLevel.Warning, "soft").isNonNegative("tax").where("status = 'paid'")
)
