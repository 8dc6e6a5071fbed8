package arff

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/harness/allocs"
)

// readAll reads a file.
func readAll(text string) (r *Reader, records [][]string, err error) {
	r, err = NewReader(bufio.NewReaderSize(strings.NewReader(text), 16))
	if err != nil {
		return nil, nil, err
	}
	for {
		record, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			return r, records, nil
		}
		if err != nil {
			return r, records, err
		}
		records = append(records, slices.Clone(record))
	}
}

const weather = `% a comment
@RELATION 'the weather: -C -1'

@attribute 'the outlook' {sunny, 'over cast',"it\'s rain" }
@ATTRIBUTE	temperature	REAL
@attribute humidity integer [0, 100]
@attribute note string
@attribute play {0,1}
@DATA
sunny, 85, 85, 'no, none', 0
'over cast',83.5,?,"say \"hi\"",1
% another
"it's rain" ,	-1e3 , 4 ,?, 1
{1 4.5, 3 'a b', 4 1}
{ }
{0 'over cast' ,2 7}
`

func TestRead(t *testing.T) {
	r, records, err := readAll(weather)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"sunny", "85", "85", "no, none", "0"}, {"over cast", "83.5", "?", `say "hi"`, "1"},
		{"it's rain", "-1e3", "4", "?", "1"}, {"sunny", "4.5", "0", "a b", "1"}, {"sunny", "0", "0", "?", "0"},
		{"over cast", "0", "7", "?", "0"},
	}
	if !slices.EqualFunc(records, want, slices.Equal) {
		t.Errorf("%q, want %q", records, want)
	}
	var names []string
	for _, a := range r.Attributes {
		names = append(names, a.Name)
	}
	if !slices.Equal(names, []string{"the outlook", "temperature", "humidity", "note", "play"}) {
		t.Errorf("%q", names)
	}
	if labels, err := r.Labels(); err != nil || !slices.Equal(labels, []int{4}) {
		t.Errorf("labels %v, %v", labels, err)
	}
	_, records, err = readAll("@relation x\n@attribute a numeric\n@attribute b numeric\n@data\n1 2\n3\t4")
	if err != nil || !slices.EqualFunc(records, [][]string{{"1", "2"}, {"3", "4"}}, slices.Equal) {
		t.Errorf("with blanks: %q, %v", records, err)
	}
}

func TestRefused(t *testing.T) {
	head := "@relation x\n@attribute a numeric\n@attribute b {y,z}\n@data\n"
	for text, says := range map[string]string{
		"":                              "no line @data",
		"@relation 'x\n":                "no closing quote",
		"@relation x\n@data\n":          "no attributes",
		"@attribute a complex\n@data\n": "complex",
		"@attribute a {x,y\n@data\n":    "do not end in }",
		"1,2\n":                         "@relation",
		head + "1\n":                    "line 5: found 1 values, want 2",
		head + "1,y,3\n":                "found 3 values",
		head + "1,w\n":                  `"w" is no level`,
		head + "1,y,{5}\n":              "weight",
		head + "{0 1, 1 y}, {5}\n":      "weights",
		head + "{0 1\n":                 "does not end in }",
		head + "{2 1}\n":                "from 0 to 1",
		head + "{0 1, 0 2}\n":           "two values",
		head + "{0}\n":                  "no value",
		head + "1,y,\n":                 "ends in a comma",
		strings.Replace(head, "x", "'x: -C 7'", 1) + "": "",
	} {
		_, _, err := readAll(text)
		if says == "" {
			continue
		}
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
	r, _, err := readAll(strings.Replace(head, "x", "'x: -C 7'", 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Labels(); !errors.Is(err, ErrFormat) {
		t.Errorf("7 labels of 2 attributes: %v", err)
	}
}

func TestReadLabels(t *testing.T) {
	names, err := ReadLabels(strings.NewReader(`<?xml version="1.0" encoding="utf-8"?>
<labels xmlns="http://mulan.sourceforge.net/labels">
<label name="amazed"></label><label name="sad"><label name="very &amp; sad"/></label>
</labels>`), nil)
	if err != nil || !slices.Equal(names, []string{"amazed", "sad", "very & sad"}) {
		t.Errorf("%q, %v", names, err)
	}
	for _, text := range []string{"", "<labels></labels>", "<label name='x'/>", "<labels><label/></labels>",
		"<labels><x/></labels>",
		"<labels><label name='x'></labels>"} {
		if _, err := ReadLabels(strings.NewReader(text), nil); !errors.Is(err, ErrFormat) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// FuzzRead: a file is read or refused, in proportion to its size. A sparse row may take as much as all attributes.
func FuzzRead(f *testing.F) {
	f.Add(weather)
	f.Add("@relation 'x: -C 2'\n@attribute a numeric\n@attribute b {y,z}\n@data\n{1 z}\n1,y\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		allocs.AtMost(t, 512*len(text)+1<<20, "an ARFF file", func() {
			r, err := NewReader(bufio.NewReader(strings.NewReader(text)))
			for err == nil {
				_, _, err = r.Next()
			}
			if !errors.Is(err, ErrFormat) && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
		})
	})
}

// FuzzLabels: a list of labels is read or refused, in proportion to its size.
func FuzzLabels(f *testing.F) {
	f.Add(`<labels><label name="a"/><label name="b"><label name="c"/></label></labels>`)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		allocs.AtMost(t, 1024*len(text)+1<<20, "a list of labels", func() {
			if _, err := ReadLabels(strings.NewReader(text), nil); err != nil && !errors.Is(err, ErrFormat) {
				t.Fatal(err)
			}
		})
	})
}
