package printable

import "testing"

func TestWidth(t *testing.T) {
	for text, want := range map[string]int{"abc": 3, "最近邻（三）": 12, "e\u0301té": 3, "± •": 3, "🎉": 2, "": 0} {
		if got := Width(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}
