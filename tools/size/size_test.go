package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMeasure(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want lines
	}{
		"nothing":             {"", lines{}},
		"no newline":          {"package p", lines{1, 0}},
		"blank lines":         {"\n\npackage p\n \t\n\n", lines{1, 0}},
		"a comment":           {"// Package p.\npackage p\n", lines{1, 1}},
		"both on a line":      {"package p // p\n", lines{1, 0}},
		"a long comment":      {"/* a\n\nb */\npackage p\n", lines{1, 2}},
		"code after one":      {"/* a\nb */ package p\n", lines{1, 1}},
		"a comment in text":   {"package p\nvar s = \"// no\"\n", lines{2, 0}},
		"text over lines":     {"package p\nvar s = `a\n\n// b\n`\n", lines{4, 0}},
		"lines that end CRLF": {"// a\r\n\r\npackage p\r\n", lines{1, 1}},
		"code that is wrong":  {"package p\n@ ¬ '\n", lines{2, 0}},
		"assembly":            {"#include \"textflag.h\"\n\n// func f()\nTEXT ·f(SB), NOSPLIT, $0-8 // f\n\tMOVQ $0x10, AX; RET\n\tVMOVUPS tail<>+4(SB), Y1 \\\n\n/* end */\n", lines{4, 2}},
	} {
		if got := measure([]byte(test.text)); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

// Folders count apart, and once each, whatever the arguments.
func TestCount(t *testing.T) {
	top := t.TempDir()
	for name, text := range map[string]string{
		"a/a.go": "package a\n", "a/a_test.go": "// Tests.\npackage a\n\nvar x int\n", "a/b/b.go": "// B.\npackage b\n", "a/b/b.s": "RET\n",
		"a/testdata/c.go": "package c\n", "a/.d/d.go": "package d\n", "a/e.md": "text\n", "f/f.go": "package f\n",
	} {
		file := filepath.Join(top, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(top)
	var out bytes.Buffer
	if err := run(&out, "json", []string{"a", "a/b/"}); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"code":1,"comments":0,"folder":"a","test_code":2,"test_comments":1},{"code":2,"comments":1,"folder":"a/b","test_code":0,"test_comments":0}]`
	if string(again) != want {
		t.Errorf("%s\nwant %s", again, want)
	}
	out.Reset()
	if err := run(&out, "text", nil); err != nil {
		t.Fatal(err)
	}
	rows := strings.Split(out.String(), "\n")
	if len(rows) != 6 || strings.Join(strings.Fields(rows[4]), " ") != "4 1 0.250 2 1 all" {
		t.Errorf("got\n%s", out.String())
	}
	for _, err := range []error{run(&out, "yaml", nil), run(&out, "text", []string{"none"})} {
		if err == nil {
			t.Error("what is wrong was accepted")
		}
	}
}
