package main

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"unicode/utf8"
)

func printTables(w io.Writer, results []result, rounds int) error {
	fmt.Fprintf(w, "%s %s/%s, %d cores; median and minimum of %d round(s)\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), rounds)
	for _, r := range results {
		ratio := "×" + r.group.reference
		table := [][]string{
			{"", "", "1 core", "", "", "2 cores", "", "", "", ""},
			{"subject", "does", "ns/op", "min", ratio, "ns/op", "min", ratio, "B/op", "allocs/op"},
		}
		for _, row := range r.rows {
			table = append(table, []string{
				row.Subject, row.Does.String(),
				nanos(row.Serial.NsMedian), nanos(row.Serial.NsMin), times(row.Serial.Ratio),
				nanos(row.TwoCores.NsMedian), nanos(row.TwoCores.NsMin), times(row.TwoCores.Ratio),
				fmt.Sprint(row.Serial.Bytes), fmt.Sprint(row.Serial.Allocs),
			})
		}
		fmt.Fprintf(w, "\n%s: %s\n", r.group.name, r.group.about)
		if _, err := io.WriteString(w, align(table, 2)+differences(r.rows)); err != nil {
			return err
		}
	}
	return nil
}

// differences is the table of what some subjects take more than others.
func differences(rows []row) string {
	table := [][]string{{"takes more", "than", "1 core", "min", "2 cores", "min", "B/op", "allocs/op"}}
	for _, row := range rows {
		if d := row.More; d != nil {
			table = append(table, []string{
				row.Subject, d.Over, signed(d.Serial.NsMedian), signed(d.Serial.NsMin), signed(d.TwoCores.NsMedian), signed(d.TwoCores.NsMin),
				fmt.Sprintf("%+d", d.Serial.Bytes), fmt.Sprintf("%+d", d.Serial.Allocs),
			})
		}
	}
	if len(table) == 1 {
		return ""
	}
	return "\n" + align(table, 2)
}

func signed(ns float64) string {
	if ns < 0 {
		return "-" + nanos(-ns)
	}
	return "+" + nanos(ns)
}

// align pads the cells: the first few columns to the left, numbers to the right.
func align(table [][]string, textColumns int) string {
	widths := make([]int, len(table[0]))
	for _, row := range table {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range table {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i < textColumns {
				line.WriteString(cell + pad)
			} else {
				line.WriteString(pad + cell)
			}
			line.WriteString("  ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// nanos has three digits or so, which is more precise than a shared machine.
func nanos(ns float64) string {
	if ns < 100 {
		return fmt.Sprintf("%.1f", ns)
	}
	return fmt.Sprintf("%.0f", ns)
}

func times(ratio float64) string {
	switch {
	case ratio == 0:
		return "-" // the group has no reference
	case ratio < 10:
		return fmt.Sprintf("%.2f", ratio)
	}
	return fmt.Sprintf("%.1f", ratio)
}
