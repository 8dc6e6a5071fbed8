package main

import (
	"strings"
	"testing"
)

// TestDecimalFlags: flags that are numbers are decimal, on the command line and from outside.
func TestDecimalFlags(t *testing.T) {
	dir := t.TempDir()
	file := artificialFile(t, dir, "a.csv", 40, 1)
	for _, c := range []struct{ flag, value string }{
		{"--sigma", "0x1p1"}, {"--sigma", "1_0"}, {"--tolerance", "0x1p-9"}, {"--tolerance", "1e-0_4"}, {"--range", "0:0x10"}, {"--range", "0:1_0"}, {"--missing", "1_0"}, {"--missing", "0x10"},
	} {
		args := []string{"train", "--local", "--data", file, "--labels", "age", c.flag + "=" + c.value}
		for _, other := range []string{"--sigma=2", "--range=0:69"} {
			if !strings.HasPrefix(other, c.flag) {
				args = append(args, other)
			}
		}
		if e := coppice(t, args...); e.code != exitUsage || !strings.Contains(e.stderr, c.value) {
			t.Errorf("%s %s: exit code %d, %s", c.flag, c.value, e.code, e.stderr)
		}
	}
	for _, value := range []string{"0x10", "1_0", "0b11", "1e1", "10.0", ""} {
		if e := coppice(t, "dataset", "generate", "--out", dir+"/b.csv", "--rows="+value); e.code != exitUsage {
			t.Errorf("--rows %s: exit code %d, %s", value, e.code, e.stderr)
		}
	}
	var made struct {
		Rows int `json:"samples"`
	}
	inJSON(t, &made, "dataset", "generate", "--out", dir+"/b.csv", "--rows", "010")
	if made.Rows != 10 {
		t.Errorf("--rows 010 is %d", made.Rows)
	}
	t.Setenv("COPPICE_ROWS", "1_0")
	if e := coppice(t, "dataset", "generate", "--out", dir+"/c.csv"); e.code != exitUsage || !strings.Contains(e.stderr, "COPPICE_ROWS") {
		t.Errorf("COPPICE_ROWS: exit code %d, %s", e.code, e.stderr)
	}
}
