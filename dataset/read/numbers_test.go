package read

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/datasettest"
	"github.com/coppice-ldl/coppice/dataset/importer"
	"github.com/coppice-ldl/coppice/dataset/numbers"
)

// TestDecimalNumbersOnly: the syntax of Go's numbers, with underscores and hexadecimal digits, is not that of data.
func TestDecimalNumbersOnly(t *testing.T) {
	for _, text := range []string{"1_2", "10_1", "0x1p3", "0X10", "-0x1p-3", "1_000.5"} {
		for name, b := range map[string]string{
			"a.csv": "site,label_a,label_b\n" + text + ",0.5,0.5\n", "b.csv": "site,label_a,label_b\n1," + text + ",0.5\n",
			"a.libsvm": "0.5,0.5 1:" + text + "\n", "b.libsvm": "0.5," + text + " 1:1\n",
		} {
			src, err := OpenFile(t, name, b, OpenOptions{})
			if err == nil {
				_, _, err = importer.Build(src, importer.Options{})
			}
			datasettest.MustContain(t, err, name, fmt.Sprintf("%q is not a number", text))
		}
		if m, err := dataset.ParseMissing(text); err == nil {
			t.Errorf("--missing %s is %+v", text, m)
		}
		if low, high, err := ParseRange("0:" + text); err == nil {
			t.Errorf("--range 0:%s is %d to %d", text, low, high)
		}
	}
	comma := numbers.Marks{Comma: true}
	if v, reason := comma.Parse("1_2,5"); reason == "" {
		t.Errorf("1_2,5 is %v", v)
	}
}

// TestMissingWordsOfColumns: a missing value is written so in columns of all kinds, in small and capital letters.
func TestMissingWordsOfColumns(t *testing.T) {
	for _, word := range []string{
		"", " ", "NA", "n/a", "#N/A", "#NA", "<NA>", "nan", "-NaN", "-nan", "+nan", "NULL", "None", "?", "#N/A N/A",
		"-nan(ind)", "nan(ind)",
		`\N`, ".", "1.#QNAN", "-1.#QNAN", "1.#IND", "-1.#IND", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#NULL!",
	} {
		for _, word := range []string{word, strings.ToLower(word), strings.ToUpper(word), " " + word} {
			for what, content := range map[string]string{
				"feature": "x,label_a,label_b,person\n" + word + ",.5,.5,p\n1,.5,.5,q\n", "label": "x,label_a,label_b,person\n2," +
					word + ",.5,p\n1,.5,.5,q\n",
				"group": "x,label_a,label_b,person\n2,.5,.5," + word + "\n1,.5,.5,q\n",
			} {
				src, err := OpenFile(t, "a.csv", content, OpenOptions{Missing: dataset.Missing{Drop: true},
					Beside: BesideOptions{Groups: "person"}, CSV: CSVOptions{Header: dataset.HeaderYes}})
				if err != nil {
					t.Fatal(err)
				}
				m, _, err := importer.Build(src, importer.Options{})
				if err != nil || m.Rows != 1 || len(m.LeftOutRows()) != 1 {
					t.Errorf("%s %q: %v, %v", what, word, m, err)
				}
			}
			names, _, err := ClassesOf(t, "a.csv", Column("class", "a", word, "b"),
				OpenOptions{Missing: dataset.Missing{Drop: true}})
			if err != nil || fmt.Sprint(names) != "[a b]" {
				t.Errorf("class %q: %v, %v", word, names, err)
			}
			src, err := OpenFile(t, "a.csv", "x,y,label_a,label_b\n"+word+",1,.5,.5\n",
				OpenOptions{CSV: CSVOptions{Header: dataset.HeaderYes}})
			if err == nil {
				_, _, err = importer.Build(src, importer.Options{})
			}
			datasettest.MustContain(t, err, "row 0", "--missing drop")
		}
	}
	for _, word := range []string{"nano", "n", "-", "..", "0", "1.5", "inf", "#", "missing", "nan1", "a"} {
		if numbers.IsMissing(word) {
			t.Errorf("%q is missing", word)
		}
	}
}
