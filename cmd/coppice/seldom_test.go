package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Of a thousand bad messages a second the log has twenty lines a minute, whichever logger writes
// them, and says how many it left out; other lines, and other texts, are all there.
func TestSeldom(t *testing.T) {
	var out bytes.Buffer
	h := newServiceLog(slog.NewTextHandler(&out, nil), true)
	loggers := []slog.Handler{h, h.WithAttrs([]slog.Attr{slog.String("worker", "w")}), h.WithGroup("g")}
	put := func(second, i int, level slog.Level, text string) {
		r := slog.NewRecord(time.Unix(int64(second), 0), level, text, 0)
		r.AddAttrs(slog.Int("i", i))
		if err := loggers[i%len(loggers)].Handle(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	for second := range 120 {
		for i := range 1000 {
			put(second, i, slog.LevelWarn, "a message was dropped")
		}
		put(second, 0, slog.LevelInfo, "joined")
		put(second, 0, slog.LevelError, "failed")
		if second%10 == 0 {
			put(second, 0, slog.LevelWarn, "refused")
		}
	}
	for text, want := range map[string]int{"a message was dropped": 2 * warnLines, "joined": 120, "failed": 120, "refused": 12, "omitted_before=59980": 1, "omitted_before": 1} {
		if got := strings.Count(out.String(), text); got != want {
			t.Errorf("%q is there %d times, want %d", text, got, want)
		}
	}
}

// Ever new texts take no memory without bound, and are all written.
func TestSeldomTexts(t *testing.T) {
	c := &warnCounts{texts: make(map[string]*warnCount)}
	for i := range 10 * warnTexts {
		if written, _ := c.add(fmt.Sprint(i), time.Unix(0, 0)); !written {
			t.Fatalf("text %d is not written", i)
		}
	}
	if n := len(c.texts); n > warnTexts {
		t.Errorf("%d texts are kept", n)
	}
}
