package main

import (
	"errors"
	"testing"
)

// TestNearOnly: of what is suggested for a word that is not known only what is near, or begins so, is left.
func TestNearOnly(t *testing.T) {
	for text, want := range map[string]string{
		`unexpected argument foo, did you mean "job"?`:                                "unexpected argument foo",
		`unexpected argument modle, did you mean "model"?`:                            `unexpected argument modle, did you mean "model"?`,
		`unknown flag --k, did you mean one of "-h", "-o", "--kept-memory"?`:          "unknown flag --k",
		`unknown flag --dat, did you mean one of "--data", "--set", "--data-format"?`: `unknown flag --dat, did you mean one of "--data", "--data-format"?`,
		`unknown flag --foo`:                           "unknown flag --foo",
		`missing flags: --out=FILE, did you mean "x"?`: `missing flags: --out=FILE, did you mean "x"?`,
	} {
		from := errors.New(text)
		if err := nearOnly(from); err.Error() != want || !errors.Is(err, from) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
