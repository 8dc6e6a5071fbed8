package apitest

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestMisfits: the check of responses finds what is wrong.
func TestMisfits(t *testing.T) {
	d := document()
	schema := d.at(map[string]any(d), "components", "schemas", "DatasetCheck")
	for text, want := range map[string]string{
		`{"lacking": ["x"]}`: "", `{"lacking": [1]}`: "x.lacking[0] is 1, want string", `{}`: "x lacks the key lacking",
		`{"lacking": null}`: "x.lacking is null, want array", `[]`: "x is a list, want object",
		`{"lacking": [], "other": 1}`: "x has the key other, which its schema lacks",
	} {
		dec := json.NewDecoder(strings.NewReader(text))
		dec.UseNumber()
		var v any
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		if got := d.misfit("x", v, schema); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
