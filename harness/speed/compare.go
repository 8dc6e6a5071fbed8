package speed

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// maxReport bounds the file of a report, in bytes.
const maxReport = 16 << 20

// ReadReport reads a report that `coppice bench KIND -o json` wrote.
func ReadReport(path, kind string) (*Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err != nil {
		return nil, err
	}
	r, err := parseReport(b, kind)
	if err != nil {
		return nil, fmt.Errorf("%s %w", path, err)
	}
	return r, nil
}

func parseReport(b []byte, kind string) (*Report, error) {
	if len(b) > maxReport {
		return nil, fmt.Errorf("has more than %d bytes, so it is not a report of coppice bench", maxReport)
	}
	var r Report
	if err := json.Unmarshal(b, &r); err != nil {
		return nil, fmt.Errorf("is not an output of coppice bench -o json: %w", err)
	}
	if r.Kind != kind {
		return nil, fmt.Errorf("has results of bench %s, want bench %s", orUnknown(r.Kind), kind)
	}
	for _, row := range r.Rows {
		if s := row.Seconds; !(s.Min > 0 && s.Min <= s.Median && s.Median <= s.Max) {
			return nil, fmt.Errorf("has impossible times for %s: median %v s, from %v s to %v s", row.label(), s.Median, s.Min, s.Max)
		}
	}
	return &r, nil
}

func orUnknown(kind string) string {
	if kind == "" {
		return "of an unknown kind"
	}
	return kind
}

// Compare holds a report against an earlier one that was read from a file.
func Compare(file string, before, now *Report) *Comparison {
	c := &Comparison{
		File: file, Machines: differences(machineLines(before.Machine), machineLines(now.Machine)),
		Versions: differences(versionLines(before.Versions), versionLines(now.Versions)),
	}
	for _, r := range now.Rows {
		old := find(before.Rows, r)
		if old == nil {
			c.Missing = append(c.Missing, r.label()+" (only in the new report)")
			continue
		}
		c.Rows = append(c.Rows, Was{
			Name: r.Name, Of: r.Of, Ratio: old.Seconds.Median / r.Seconds.Median,
			Apart: old.Seconds.Min > r.Seconds.Max || old.Seconds.Max < r.Seconds.Min,
		})
	}
	for _, r := range before.Rows {
		if find(now.Rows, r) == nil {
			c.Missing = append(c.Missing, r.label()+" (only in the old report)")
		}
	}
	return c
}

func (r Result) label() string { return r.Name + ", " + r.Of }

func find(rows []Result, like Result) *Result {
	for i := range rows {
		if rows[i].Name == like.Name && rows[i].Of == like.Of {
			return &rows[i]
		}
	}
	return nil
}

func machineLines(m Machine) []string {
	return []string{m.Processor, fmt.Sprintf("%d cores", m.Cores), m.System, "with " + strings.Join(m.Features, " "), "kernels: " + m.Kernels}
}

func versionLines(v map[string]string) (lines []string) {
	for name, number := range v {
		lines = append(lines, name+" "+number)
	}
	slices.Sort(lines)
	return lines
}

// differences lists what only one of two lists has: "before X, now Y"; empty for none.
func differences(before, now []string) string {
	only := func(a, b []string) string {
		var all []string
		for _, x := range a {
			if !slices.Contains(b, x) {
				all = append(all, x)
			}
		}
		if all == nil {
			return "nothing else"
		}
		return strings.Join(all, ", ")
	}
	if slices.Equal(before, now) {
		return ""
	}
	return "before " + only(before, now) + "; now " + only(now, before)
}
