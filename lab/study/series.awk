# Of a series, for each policy, as a mean over the seeds: its highest point, its
# mean, and its sum, from a moment on (after, in seconds) and up to another
# (before). Rates are per second, the sum is a number.
#
#	lull simulate ... --csv | awk -F, -v series=attempts -v after=2.2 -f series.awk
#
# "attempts" are first attempts and retries together.
BEGIN { if (before == "") before = 1e9 }
NR == 2 { step = $3 }
NR > 1 {
	if (!($1 in seen)) { seen[$1] = 1; order[++policies] = $1 }
	seeds[$1, $2] = 1
	wanted = $4 == series || series == "attempts" && ($4 == "first_attempts" || $4 == "retries")
	if (wanted && $3 > after + step / 2 && $3 <= before) at[$1, $2, $3] += $5
}
END {
	for (k in at) {
		split(k, p, SUBSEP)
		run = p[1] SUBSEP p[2]
		if (at[k] > most[run]) most[run] = at[k]
		sum[run] += at[k]
		points[run]++
	}
	for (k in seeds) {
		split(k, p, SUBSEP)
		n[p[1]]++
		peak[p[1]] += most[k]
		if (points[k]) mean[p[1]] += sum[k] / points[k]
		total[p[1]] += sum[k] * step
	}
	printf "%-20s %10s %10s %10s\n", series, "peak", "mean", "sum"
	for (i = 1; i <= policies; i++) {
		c = order[i]
		printf "%-20s %10.0f %10.0f %10.1f\n", c, peak[c] / n[c], mean[c] / n[c], total[c] / n[c]
	}
}
