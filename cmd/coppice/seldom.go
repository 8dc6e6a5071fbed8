package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// A service writes at most warnLines warnings of one text in warnEvery, however many messages are
// bad: the log shall not fill a disk.
const (
	warnLines = 20
	warnEvery = time.Minute
	warnTexts = 1024 // that are counted at a time
)

// seldom is a handler of logs that counts warnings in the place of writing too many.
type seldom struct {
	slog.Handler
	counts *warnCounts
}

func newSeldom(h slog.Handler) *seldom {
	return &seldom{h, &warnCounts{texts: make(map[string]*warnCount)}}
}

// Handle implements slog.Handler.
func (s *seldom) Handle(ctx context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn {
		written, omitted := s.counts.add(r.Message, r.Time)
		if !written {
			return nil
		}
		r = r.Clone()
		if omitted > 0 {
			r.AddAttrs(slog.Int("omitted_before", omitted))
		}
	}
	return s.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (s *seldom) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &seldom{s.Handler.WithAttrs(attrs), s.counts}
}

// WithGroup implements slog.Handler.
func (s *seldom) WithGroup(name string) slog.Handler {
	return &seldom{s.Handler.WithGroup(name), s.counts}
}

// warnCounts counts warnings by their texts.
type warnCounts struct {
	mu    sync.Mutex
	texts map[string]*warnCount
}

// warnCount is what there was of one text.
type warnCount struct {
	since            time.Time
	written, omitted int
}

// add counts a warning: whether it is to be written, and how many of its text were not before it.
func (c *warnCounts) add(text string, at time.Time) (written bool, omitted int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.texts[text]
	switch {
	case w == nil && len(c.texts) >= warnTexts:
		clear(c.texts)
		fallthrough
	case w == nil:
		w = &warnCount{since: at}
		c.texts[text] = w
	case at.Sub(w.since) >= warnEvery:
		omitted, *w = w.omitted, warnCount{since: at}
	}
	if w.written >= warnLines {
		w.omitted++
		return false, 0
	}
	w.written++
	return true, omitted
}
