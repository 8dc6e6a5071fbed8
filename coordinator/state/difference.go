package state

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/coppice-ldl/coppice/engine/round"
	"github.com/coppice-ldl/coppice/protocol"
)

// field is one thing that a job was asked for, by the name that users give it.
type field struct{ key, value string }

// otherSettings is said of jobs of one algorithm whose settings have different names, as two versions may have them.
const otherSettings = "it has different settings"

// difference names the first thing in which a submission differs from the job that has
// its name.
func difference(j *Job, e *protocol.SubmitEntry) string {
	has, wants := fieldsOf(j.Dataset, j.AuditPPM, j.Job), fieldsOf(e.Dataset, e.AuditPPM, e.Job)
	for i, f := range has[:min(len(has), len(wants))] {
		if wants[i].key != f.key {
			return otherSettings
		}
		if wants[i] != f {
			return fmt.Sprintf("its %s is %.100s, but the new job has %.100s", f.key, f.value, wants[i].value)
		}
	}
	if len(has) != len(wants) {
		return otherSettings
	}
	return "its division into training and test samples is different"
}

// fieldsOf lists what a job was asked for: what is plainest first, then the settings in
// their order.
func fieldsOf(dataset string, ppm uint32, j *round.Job) []field {
	all := []field{
		{"algorithm", j.Algorithm}, {"dataset", dataset}, {"dataset's digest", j.Dataset}, {"seed", fmt.Sprint(j.Seed)},
		{"test_fraction", fmt.Sprint(j.Split.TestFraction)}, {"folds", fmt.Sprint(j.Folds)}, {"split file", orNone(j.Split.Assigned)},
		{"keep_predictions", fmt.Sprint(j.Predictions)},
		{"measures", orTen(j.Measures)}, {"clip", orNone(j.Clip)},
		{"audit", fmt.Sprintf("%d of a million tasks", ppm)}, {"arithmetic version", fmt.Sprint(j.Numerics)},
	}
	return append(all, settingsOf(j.Params)...)
}

func orTen(text string) string {
	if text == "" {
		return "ten"
	}
	return text
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// settingsOf reads the keys and values of a JSON object, in their order.
func settingsOf(raw json.RawMessage) (all []field) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return all
		}
		all = append(all, field{fmt.Sprint(key), string(value)})
	}
	return all
}
