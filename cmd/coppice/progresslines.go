package main

import (
	"encoding/json"

	"github.com/coppice-ldl/coppice/engine/round"
)

// progressLines are what `coppice train -o jsonl` prints: a line of JSON for each progress of the
// job, and one for its result.
type progressLines struct {
	out  *json.Encoder
	last round.Progress
}

// newProgressLines returns nil unless -o jsonl asks for them.
func (a *app) newProgressLines() *progressLines {
	if a.output != outputJSONL {
		return nil
	}
	return &progressLines{out: a.encoder()}
}

// put writes p unless it is as before. An error of stdout fails the command at its end.
func (l *progressLines) put(p round.Progress) {
	if l == nil || p == l.last {
		return
	}
	l.last = p
	l.out.Encode(struct {
		Progress round.Progress `json:"progress"`
	}{p})
}

// outputs implements printer.
func (*trainCmd) outputs() []string { return []string{outputJSONL} }

// printResult prints the result of a training.
func (a *app) printResult(r *result) error {
	if l := a.newProgressLines(); l != nil {
		return l.out.Encode(struct {
			Result *result `json:"result"`
		}{r})
	}
	return a.print(r, r.text)
}
