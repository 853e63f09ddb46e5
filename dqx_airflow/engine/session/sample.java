public long sum(Object[] rows) {
  long sum = 0L;
  for (int i = 0; i < rows.length; i++) {
    if (rows[i] != null) { sum += ((Number) rows[i]).longValue(); } else { sum -= 1L; }
  }
  return sum;
}
