package commands

import (
	"encoding/binary"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/coppice-ldl/coppice/cmd/cli"
	"github.com/coppice-ldl/coppice/cmd/results"
	"github.com/coppice-ldl/coppice/harness/testkit"
	"github.com/coppice-ldl/coppice/harness/testkit/clitest"
	"github.com/coppice-ldl/coppice/harness/testkit/cmdtest"
)

// saved are the same text as editors and spreadsheets save it.
func saved(text string) map[string]string {
	utf16Of := func(order binary.AppendByteOrder) string {
		b := order.AppendUint16(nil, 0xfeff)
		for _, u := range utf16.Encode([]rune(strings.ReplaceAll(text, "\n", "\r\n"))) {
			b = order.AppendUint16(b, u)
		}
		return string(b)
	}
	return map[string]string{
		"mark": "\ufeff" + text, "crlf": strings.ReplaceAll(text, "\n", "\r\n"), "le": utf16Of(binary.LittleEndian),
		"be": utf16Of(binary.BigEndian),
	}
}

// TestSideFilesOfCommands: --spec, --names, --split, --config and the spec of an experiment are read as data files are,
// with a byte order mark or in UTF-16; Latin-1 is refused with the file and the line.
func TestSideFilesOfCommands(t *testing.T) {
	testkit.WithoutRace(t)
	dir := t.TempDir()
	content := strings.ReplaceAll(clitest.Kinds(), "oak", "größe")
	data := cmdtest.Write(t, dir, "kinds.csv", content)
	rows := strings.Count(content, "\n") - 1
	var split strings.Builder
	split.WriteString("row;fold\n")
	for i := range rows {
		split.WriteString(strings.Join([]string{strconv.Itoa(i), strconv.Itoa(i % 2)}, ";") + "\n")
	}
	const table = "# größe\nname: small\nfolds: {k: 2}\ndatasets:\n  - {file: kinds.csv, labels: class}\nmethods:\n  - " +
		"{algorithm: aa-knn, settings: {k: 3}}\n"
	splits, specs := saved(split.String()), saved("# größe\nalgorithm: aa-knn\nk: 3\n")
	names, configs, tables := saved("{\"labels\": [\"größe\", \"ash\", \"elm\"]}\n"),
		saved("train:\n  set: k=2 # größe\n"), saved(table)
	for kind := range specs {
		in := t.TempDir()
		cmdtest.Write(t, in, "kinds.csv", content)
		var r results.Result
		cmdtest.JSON(t, &r, "train", "--local", "--data", data, "--labels", "class", "--spec",
			cmdtest.Write(t, in, "s.yaml", specs[kind]),
			"--names", cmdtest.Write(t, in, "n.json", names[kind]), "--split", cmdtest.Write(t, in, "f.csv", splits[kind]))
		if len(r.Folds) != 2 {
			t.Errorf("%s: %+v", kind, r)
		}
		cmdtest.Works(t, "train", "--local", "--data", data, "--labels", "class", "--algorithm", "aa-knn", "--config",
			cmdtest.Write(t, in, "c.yaml", configs[kind]))
		cmdtest.Works(t, "experiment", "run", cmdtest.Write(t, in, "e.yaml", tables[kind]), "--local")
	}
	for file, command := range map[string][]string{
		"s.yaml": {"train", "--local", "--data", data, "--labels", "class", "--spec"}, "n.json": {"train", "--local",
			"--data", data, "--labels", "class", "--names"},
		"c.yaml": {"train", "--local", "--data", data, "--labels", "class", "--config"}, "e.yaml": {"experiment", "run",
			"--local"},
	} {
		path := cmdtest.Write(t, dir, file, "\n# gr\xf6\xdfe\n")
		if e := cmdtest.Run(t, append(command, path)...); e.Code == cli.ExitOK ||
			!strings.Contains(e.Stderr, filepath.Base(path)) || !strings.Contains(e.Stderr, "line 2") ||
			!strings.Contains(e.Stderr, "UTF-8") {
			t.Errorf("%s: exit code %d, %s", file, e.Code, e.Stderr)
		}
	}
}
