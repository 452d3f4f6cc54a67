# Of a sweep, for each policy: in how many of the cells in which "exponential"
# loses 1 % of the calls or more it loses less than 0.9 times or more than 1.1
# times as many.
#
#	lull simulate ... --sweep A=... --sweep B=... --csv | awk -F, -f grid.awk
NR > 1 { cell[$1 "," $2] = 1; lost[$1 "," $2, $3] = 1 - $8; if (!($3 in seen)) { seen[$3] = 1; order[++policies] = $3 } }
END {
	for (c in cell) {
		if (lost[c, "exponential"] < 0.01) continue
		n++
		for (p in seen) {
			r = lost[c, p] / lost[c, "exponential"]
			better[p] += r < 0.9
			worse[p] += r > 1.1
		}
	}
	for (i = 1; i <= policies; i++) printf "%-18s of %d cells better in %.0f %%, worse in %.0f %%\n", order[i], n, 100 * better[order[i]] / n, 100 * worse[order[i]] / n
}
