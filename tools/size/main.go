// Command size counts lines of Go and of assembly, folder by folder: code and comments,
// of the product and of its tests. A line with both is a line of code; blank lines
// do not count.
//
//	go run ./tools/size                          every folder
//	go run ./tools/size algorithms spec          these and the folders below them
//	go run ./tools/size -o json algorithms/ldlf  for other programs
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

func main() {
	output := flag.String("o", "text", "what to print: text or json")
	flag.Parse()
	if err := run(os.Stdout, *output, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, output string, folders []string) error {
	if len(folders) == 0 {
		folders = []string{"."}
	}
	sizes, err := count(folders)
	if err != nil {
		return err
	}
	switch output {
	case "text":
		return writeText(w, sizes)
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(sizes)
	}
	return fmt.Errorf("-o %s: text or json", output)
}

// writeText writes a line for each folder and one for their sum.
func writeText(w io.Writer, sizes []size) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "code\tcomments\tper code\ttest code\ttest comments\t  folder")
	row := func(s size) {
		ratio := "-"
		if s.Code > 0 {
			ratio = fmt.Sprintf("%.3f", float64(s.Comments)/float64(s.Code))
		}
		fmt.Fprintf(table, "%d\t%d\t%s\t%d\t%d\t  %s\n", s.Code, s.Comments, ratio, s.TestCode, s.TestComments, s.Folder)
	}
	sum := size{Folder: "all"}
	for _, s := range sizes {
		row(s)
		sum.add(s.lines, false)
		sum.add(lines{s.TestCode, s.TestComments}, true)
	}
	row(sum)
	return table.Flush()
}
