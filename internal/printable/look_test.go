package printable_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/internal/printable"
)

func TestLook(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "a b": "a b", " a\t b ": "a b", "cafe\u0301": "caf\u00e9", "a\u00a0b": "a b", "a\u200bb\ufeff": "ab",
		"\uff11\uff12": "12", "\u200d": "",
		"x\u00b2": "x2", "\ufb01n": "fin", "图": "图",
		"a\u2011b": "a-b", "\u22121": "-1", "\u2764\ufe0f": "\u2764",
	} {
		if got := printable.Look(s); got != want {
			t.Errorf("%+q looks like %+q, want %+q", s, got, want)
		}
	}
}
