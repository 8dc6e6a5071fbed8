package datasetcmd

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/coppice-ldl/coppice/dataset/inspect"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// messy is a file as people have it, and what the first reading that inspect prints makes of it: rows, features
// and labels, or a part of the reason why it cannot be read.
type messy struct{ name, content, want string }

// sixRows writes six rows, each with a number in place of # and a degree in place of $ and the rest of 1 in place of %.
func sixRows(row string) string {
	var b strings.Builder
	for i := range 6 {
		d := float64(i*5%6+1) / 8
		b.WriteString(strings.NewReplacer("#", fmt.Sprint(i*5%7+3), "$", fmt.Sprint(d), "%", fmt.Sprint(1-d), "@",
			string(rune('a'+i)), "&", []string{"oak", "elm"}[i%2]).Replace(row) + "\n")
	}
	return b.String()
}

// comma writes numbers with a decimal comma.
func comma(s string) string { return strings.ReplaceAll(s, ".", ",") }

func utf16LE(s string) string {
	b := []byte{0xff, 0xfe}
	for _, u := range utf16.Encode([]rune(s)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return string(b)
}

// messyFiles lists files that differ in what is wrong with them.
func messyFiles() []messy {
	plain := sixRows("#,1.5,$,%")
	return []messy{
		{"plain.csv", "a,b,label_x,label_y\n" + plain, "6 2 2"},
		{"european.csv", comma("größe;b;label_x;label_y\n" + sixRows("#;1.5;$;%")), "6 2 2"},
		{"bom.csv", "\ufeffa,b,label_x,label_y\n" + plain, "6 2 2"},
		{"latin1.csv", "gr\xf6\xdfe,b,label_x,label_y\n" + plain, "6 2 2"},
		{"numbered.csv", "id,a,b,label_x,label_y\n1,3,1,.5,.5\n2,1,4,.25,.75\n3,2,2,.5,.5\n", "3 2 2"},
		{"subjects.csv", "who;a;y_1;y_2\n" + sixRows("subj-000_@;#;$;%"), "6 1 2"},
		{"categories.csv", "a,tree,label_x,label_y\n" + sixRows("#,&,$,%"), "6 3 2"},
		{"missingcategory.csv", "a,tree,size,label_x,label_y\n" + strings.Replace(sixRows("#,&,&,$,%"), ",elm,elm", ",,elm",
			1), "5 5 2"},
		{"coded.csv", "a,\"tree, kind\",label_x,label_y\n" + sixRows("#,&,$,%"), "6 3 2"},
		{"dates.csv", "day,a,label_x,label_y\n" + sixRows("2021-03-0#,#,$,%"), "6 1 2"},
		{"localdates.csv", "a,day,label_x,label_y\n" + sixRows("#,0#.03.2021,$,%"), "6 1 2"},
		{"quotes.csv", "\"name, first\",\"a \"\"b\"\"\",label_x,label_y\n" + sixRows("\"Smith, @\",#,$,%"), "6 1 2"},
		{"emptycolumn.csv", "a,,b,label_x,label_y\n" + sixRows("#,,2.5,$,%"), "6 2 2"},
		{"trailing.csv", "a,b,label_x,label_y,\n" + sixRows("#,1.5,$,%,"), "6 2 2"},
		{"trailingrows.csv", "a,b,label_x,label_y\n" + sixRows("#,1.5,$,%,,"), "6 2 2"},
		{"twins.csv", "a,a,label_x,label_y\n" + plain, "6 1 2"},
		{"blanks.csv", sixRows("#   1.5  $ %"), "6 2 2"},
		{"blanknames.txt.csv", "a b label_x label_y\n" + sixRows(" # 1.5 $ % "), "6 2 2"},
		{"tabs.csv", "a\tb\tlabel_x\tlabel_y\n" + sixRows("#\t1.5\t$\t%"), "6 2 2"},
		{"commas.tsv", "a,b,label_x,label_y\n" + plain, "6 2 2"},
		{"pipes.csv", "a|b|label_x|label_y\n" + sixRows("#|1.5|$|%"), "6 2 2"},
		{"comments.csv", "# survey 2021\n# units: mm, kg\na,b,label_x,label_y\n" + plain, "6 2 2"},
		{"savetxt.csv", "# label_x,label_y,a\n" + sixRows("$,%,#"), "6 1 2"},
		{"savetxt_blanks.csv", "# label_x label_y a\n" + sixRows("$ % #"), "6 1 2"},
		{"thousands.tsv", "income\tage\tlabel_x\tlabel_y\n12,345\t31\t0\t1\n999\t40\t1\t0\n1,024\t55\t0\t1\n870\t22\t1\t0\n",
			"4 2 2"},
		{"thousands.csv", "income;age;label_x;label_y\n12.345,5;31;0,5;0,5\n999;40;1;0\n1.024;55;0;1\n", "3 2 2"},
		{"quotedthousands.csv", "income,age,label_x,label_y\n\"12,345\",31,0.5,0.5\n999,40,1,0\n\"1,024\",55,0,1\n", "3 2 2"},
		{"quoteddecimals.csv", "a,b,label_x,label_y\n\"3,5\",31,\"0,5\",\"0,5\"\n\"2,25\",40,1,0\n", "2 2 2"},
		{"Label.csv", "Label,a,b\n" + sixRows("&,#,1.5"), "6 2 2"},
		{"several.csv", "class,a,target\n" + sixRows("&,#,&"), "6 1 2"},
		{"species.csv", "a,b,species\n" + sixRows("#,1.5,&"), "6 2 2"},
		{"noheader.csv", plain, "6 2 2"},
		{"wavelengths.csv", "400,500,1,2\n" + sixRows("0.#,1.5,$,%"), "6 2 2"},
		{"missing.csv", "a,b,label_x,label_y\n,1,.5,.5\n3,4,.25,.75\n4,NA,.5,.5\n5,2,1,0\n", "2 2 2"},
		{"gaps.csv", "a,b,label_x,label_y\n,1,.5,.5\n3,,.25,.75\n,4,.5,.5\n5,,1,0\n", "4 2 2"},
		{"counts.csv", "a,b,label_x,label_y\n" + sixRows("#,1.5,#,4"), "6 2 2"},
		{"percent.csv", "a,b,label_x,label_y\n" + sixRows("#,1.5,2#.5,7#.5"), "6 2 2"},
		{"age.csv", "Age,a,b\n" + sixRows("2#,#,1.5"), "6 2 7"},
		{"utf16.csv", utf16LE("a\tb\tlabel_x\tlabel_y\n" + sixRows("#\t1.5\t$\t%")), "6 2 2"},
		{"sep.csv", "sep=;\r\n" + comma(strings.ReplaceAll("a;b;label_x;label_y\n"+sixRows("#;1.5;$;%"), "\n", "\r\n")),
			"6 2 2"},
		{"mac.csv", strings.ReplaceAll("a,b,label_x,label_y\n"+plain, "\n", "\r"), "6 2 2"},
		{"boxes.csv", "x_min,y_min,x_max,y_max,label_joy,label_sad\n" + sixRows("1#,2#,3#,4#,$,%"), "6 4 2"},
		{"ragged.csv", "a,b,label_x,label_y\n1,2,.5,.5\n1,2,3,.5,.5\n", "found 5 columns, want 4 as in the first line"},
		{"people.csv", "person,a,label_x,label_y\n" + sixRows("&,#,$,%"), "6 1 2"},
		{"flags.csv", "a,smokes,label_x,label_y\n" + strings.NewReplacer("oak", "TRUE", "elm", "FALSE").
			Replace(sixRows("#,&,$,%")), "6 3 2"},
		{"it's a file.csv", "a,\"x,1\",\"label_x, y\",label_z\n" + sixRows("#,&,$,%"), "6 3 2"},
	}
}

// The command that inspect prints first reads nearly every file, with the right columns, and the others get a reason.
func TestMessyFiles(t *testing.T) {
	testkit.WithoutRace(t)
	done, files := 0, messyFiles()
	for _, c := range files {
		path := cmdtest.Write(t, t.TempDir(), c.name, c.content)
		e := cmdtest.Run(t, "dataset", "inspect", path)
		var f inspect.Inspection
		if !regexp.MustCompile(`^\d+ \d+ \d+$`).MatchString(c.want) {
			if all := e.Stdout + e.Stderr; !strings.Contains(all, c.want) {
				t.Errorf("%s: no reason %q: %s", c.name, c.want, all)
			}
			continue
		}
		cmdtest.JSON(t, &f, "dataset", "inspect", path)
		if len(f.Readings) == 0 || len(f.Readings[0].Commands) == 0 {
			t.Errorf("%s: no reading: %s%s", c.name, e.Stdout, e.Stderr)
			continue
		}
		r := f.Readings[0]
		if got := fmt.Sprint(r.Rows, r.Features, r.Labels); got != c.want || !strings.Contains(e.Stdout, r.Commands[0]) {
			t.Errorf("%s: %s, want %s: %s", c.name, got, c.want, e.Stdout)
			continue
		}
		var trained struct {
			Rows struct{ Train int } `json:"samples"`
		}
		args, model := cmdtest.Words(t, r.Commands[0]), filepath.Join(t.TempDir(), "m.coppice")
		cmdtest.JSON(t, &trained, append(args, "--algorithm", "aa-knn", "--set", "k=1", "--model-out", model)...)
		if trained.Rows.Train != r.Rows {
			t.Errorf("%s: %s trains on %d rows", c.name, r.Commands[0], trained.Rows.Train)
			continue
		}
		var again struct {
			Rows int `json:"samples"`
		} // it reads the file as the command did
		if cmdtest.JSON(t, &again, "evaluate", "--model", model, "--data", path); again.Rows != r.Rows {
			t.Errorf("%s: evaluated on %d rows", c.name, again.Rows)
		}
		done++
	}
	if len(files) < 30 || 10*done < 9*len(files) {
		t.Errorf("%d of %d files are read", done, len(files))
	}
}
