package main

import (
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/experiment"
	"github.com/coppice-ldl/coppice/experiment/shipped"
)

// shippedSpec is a shipped spec as experiment list --shipped prints it.
type shippedSpec struct {
	Name     string `json:"name"`
	Datasets int    `json:"datasets"`
	Methods  int    `json:"methods"`
	About    string `json:"about"`
}

// listShipped prints the shipped specs.
func listShipped(a *app) error {
	var list []shippedSpec
	for _, s := range shipped.Specs() {
		of, err := experiment.Parse(s.Name, s.Text)
		if err != nil {
			return err
		}
		list = append(list, shippedSpec{s.Name, len(of.Datasets), len(of.Rows), s.About})
	}
	return a.print(list, func(w io.Writer) {
		t := newTable(w, []string{"spec", "datasets", "methods", "about"}, 2, 3)
		for _, s := range list {
			t.AppendRow(rowOf(s.Name, count(s.Datasets), count(s.Methods), s.About))
		}
		t.Render()
		fmt.Fprintln(w, "\nto run one: coppice experiment run SPEC --data FOLDER; to print one: coppice experiment show SPEC --spec")
	})
}
