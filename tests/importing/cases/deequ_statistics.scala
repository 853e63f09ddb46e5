val checks = Seq(
  Check(CheckLevel.Error, "statistics")
    .hasColumn("x")
    .hasVariance("x", _ > 1)
    .hasZerosCount("x", _ == 0)
    .hasRange("x", _ < 10)
    .hasInterquartileRange("x", _ <= 10)
    .hasCorrelation("x", "y", _ > 0.5)
)
