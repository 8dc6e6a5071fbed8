package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/coppice-ldl/coppice/harness/speed"
)

// benchText is a report of measurements on one core, for people.
type benchText struct {
	*speed.Report
	wanted int // runs that were asked for
}

func (t *benchText) write(w io.Writer) {
	writeMachine(w, t.Report)
	t.writeRoof(w)
	for _, s := range t.Data {
		if s.Generated {
			fmt.Fprintf(w, "%s: generated\n", s.Name)
		} else {
			fmt.Fprintf(w, "%s: %s\n", s.Name, s.File)
		}
	}
	fmt.Fprintf(w, "%s, interleaved: medians (least to greatest)\n", plural(t.Runs, "run"))
	if t.Runs < t.wanted {
		fmt.Fprintf(w, "the time limit was reached before all %d runs\n", t.wanted)
	}
	fmt.Fprintln(w)
	t.rows(w)
	t.peers(w)
	for _, s := range t.Skipped {
		fmt.Fprintf(w, "\nthe peer %s was skipped: %s\n", s.Peer, s.Reason)
	}
	writeComparison(w, t.Comparison)
}

// writeMachine writes what the figures depend on.
func writeMachine(w io.Writer, r *speed.Report) {
	m := r.Machine
	fmt.Fprintf(w, "%s, %s, %s of memory, %s, %s; kernels: %s\n", m.Processor, plural(m.Cores, "core"), size(m.Memory), m.System,
		strings.Join(m.Features, " "), m.Kernels)
	var versions []string
	for name, number := range r.Versions {
		versions = append(versions, name+" "+number)
	}
	slices.Sort(versions)
	fmt.Fprintln(w, strings.Join(versions, ", "))
}

func (t *benchText) writeRoof(w io.Writer) {
	r := t.Roof
	fmt.Fprintf(w, "peak speed of one core: %s in float32, %s in float64 (%s)", flops(r.F32), flops(r.F64), r.Vectors)
	if r.AVX2F32 > 0 && r.Vectors != "AVX2" {
		fmt.Fprintf(w, "; %s and %s (AVX2)", flops(r.AVX2F32), flops(r.AVX2F64))
	}
	fmt.Fprint(w, "\nmemory bandwidth, as bytes read and written per second:")
	for i, s := range r.Streams {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, " %.0f GB in %s", s.Second/1e9, size(int64(s.Bytes)))
	}
	fmt.Fprintln(w)
}

// rows writes what Coppice takes, and its floor.
func (t *benchText) rows(w io.Writer) {
	table := newTable(w, []string{"", "", "Coppice", "theoretical minimum", "times", "rate", "of float32's peak", "K-L"}, 4, 5, 6, 7, 8)
	last := ""
	for _, r := range t.Rows {
		rate := r.Rate(r.Seconds.Median)
		table.AppendRow(rowOf(once(&last, r.Name), r.Of, spanOf(r.Seconds), span(r.Floor), fmt.Sprintf("%.1f", r.Times),
			flops(rate), fmt.Sprintf("%.0f %%", 100*rate/t.Roof.F32), loss(r.Loss)))
	}
	table.Render()
}

// peers writes what peers take, and how many times Coppice's time that is.
func (t *benchText) peers(w io.Writer) {
	if !slices.ContainsFunc(t.Rows, func(r speed.Result) bool { return len(r.Peers) > 0 }) {
		return
	}
	fmt.Fprintln(w)
	table := newTable(w, []string{"", "", "peer", "takes", "times Coppice", "K-L"}, 6)
	last := ""
	for _, r := range t.Rows {
		for _, p := range r.Peers {
			table.AppendRow(rowOf(once(&last, r.Name), r.Of, p.Peer, spanOf(p.Seconds),
				fmt.Sprintf("%.1f (%.1f to %.1f)", p.Ratio.Median, p.Ratio.Min, p.Ratio.Max), loss(p.Loss)))
		}
	}
	table.Render()
}

// writeComparison writes what became of an earlier run's figures.
func writeComparison(w io.Writer, c *speed.Comparison) {
	if c == nil {
		return
	}
	fmt.Fprintf(w, "\ncompared with %s: how many times as fast this run is\n", c.File)
	if c.Machines != "" {
		fmt.Fprintf(w, "the machines differ: %s\n", c.Machines)
	}
	if c.Versions != "" {
		fmt.Fprintf(w, "the versions differ: %s\n", c.Versions)
	}
	table := newTable(w, []string{"", "", "ratio", ""}, 3)
	last := ""
	for _, r := range c.Rows {
		says := "within the variation"
		switch {
		case r.Apart && r.Ratio > 1:
			says = "faster"
		case r.Apart:
			says = "slower"
		}
		table.AppendRow(rowOf(once(&last, r.Name), r.Of, fmt.Sprintf("%.2f", r.Ratio), says))
	}
	table.Render()
	for _, name := range c.Missing {
		fmt.Fprintf(w, "not compared: %s\n", name)
	}
}

// once returns a name where it is not the last one.
func once(last *string, name string) string {
	if *last == name {
		return ""
	}
	*last = name
	return name
}

func loss(v float64) string {
	if v == 0 {
		return ""
	}
	return figure(v)
}

// flops writes operations a second.
func flops(v float64) string {
	return strconv.FormatFloat(v/1e9, 'f', 1, 64) + " GFLOP/s"
}

// span writes seconds with three digits: 1.23 ms.
func span(seconds float64) string {
	for _, u := range []struct {
		least float64
		name  string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {0, "ns"}} {
		if seconds >= u.least {
			scale := map[string]float64{"s": 1, "ms": 1e3, "µs": 1e6, "ns": 1e9}[u.name]
			return digits(seconds*scale) + " " + u.name
		}
	}
	return "-"
}

// spanOf writes a median and its spread.
func spanOf(s speed.Spread) string {
	return fmt.Sprintf("%s (%s to %s)", span(s.Median), span(s.Min), span(s.Max))
}

// digits writes a number with three digits.
func digits(v float64) string {
	switch {
	case v >= 99.95:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.995:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
