package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/coppice-ldl/coppice/dataset"
)

// importOptions shows the progress of reading data on m.
func importOptions(ctx context.Context, checks dataset.Checks, m *meter) dataset.ImportOptions {
	return readingFor(ctx, "reading data", checks, m)
}

// readingFor shows on m how far a command is that goes through data, by what it does.
func readingFor(ctx context.Context, doing string, checks dataset.Checks, m *meter) dataset.ImportOptions {
	r := &readingMeter{meter: m, doing: doing}
	return dataset.ImportOptions{Checks: checks, Context: ctx, Warn: m.warn, Note: m.note, Progress: r.progress}
}

// readingMeter shows how far the rows of a file are, with a rate for each phase.
type readingMeter struct {
	*meter
	doing string

	first   dataset.Progress // of the phase
	firstAt time.Time
}

func (r *readingMeter) progress(p dataset.Progress) {
	now := r.now()
	if p.Phase != r.first.Phase {
		r.first, r.firstAt = p, now
	}
	r.show(readingLine(r.doing, p, r.first, now.Sub(r.firstAt)))
}

// readingLine describes p; elapsed is the time since first, of the same phase.
func readingLine(doing string, p, first dataset.Progress, elapsed time.Duration) string {
	var parts []string
	if p.Part >= 0 {
		parts = append(parts, fmt.Sprintf("%3.0f %%", 100*p.Part))
	}
	if p.Phase != "read" && p.Phase != "write" {
		doing = fmt.Sprintf("%s (%s)", doing, p.Phase)
	}
	parts = append(parts, fmt.Sprintf("%s: %s", doing, amount(p)))
	if s := elapsed.Seconds(); s > 0 && p.Done > first.Done {
		if !inShards(p) {
			parts = append(parts, perSecond(float64(p.Done-first.Done)/s))
		}
		if p.Part < 1 && p.Part > first.Part && first.Part >= 0 {
			parts = append(parts, "ETA "+duration(s*(1-p.Part)/(p.Part-first.Part)))
		}
	}
	return strings.Join(parts, "  ")
}

// perSecond writes a rate; images may take more than a second each.
func perSecond(rate float64) string {
	if rate < 10 {
		return fmt.Sprintf("%.1f samples/s", rate)
	}
	return count(uint64(rate)) + " samples/s"
}

// amount is how many rows, or shards, of how many there are.
func amount(p dataset.Progress) string {
	what := "samples"
	if inShards(p) {
		what = "shards"
	}
	if p.Of > 0 {
		return fmt.Sprintf("%s of %s %s", count(p.Done), count(p.Of), what)
	}
	return count(p.Done) + " " + what
}

// inShards tells whether a phase counts shards in place of rows.
func inShards(p dataset.Progress) bool { return p.Phase == "store" || p.Phase == "upload" }
