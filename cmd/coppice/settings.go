package main

import (
	"fmt"
	"io"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/algorithms/registry"
	"github.com/coppice-ldl/coppice/job/spec"
)

// settingInfo describes a key of a spec, as --settings -o json prints it.
type settingInfo struct {
	Key     string `json:"key"`
	Values  string `json:"values"`
	Default string `json:"default"`
	Doc     string `json:"doc"`
}

// printSettings prints the keys of every spec and those of the algorithm.
func (s *specFlags) printSettings(a *app) error {
	name := s.Algorithm
	if name == "" {
		name = spec.DefaultAlgorithm
	}
	algorithm, err := registry.Find(name)
	if err != nil {
		return usageError{err}
	}
	keys := struct {
		Algorithm string        `json:"algorithm"`
		Common    []settingInfo `json:"common"`
		Settings  []settingInfo `json:"settings"`
	}{algorithm.Name(), settingInfos(spec.Common()), settingInfos(algorithm.Params())}
	return a.print(keys, func(w io.Writer) {
		fmt.Fprintln(w, "Keys of every spec:")
		writeSettings(w, keys.Common)
		fmt.Fprintf(w, "\nSettings of %s:\n", keys.Algorithm)
		writeSettings(w, keys.Settings)
	})
}

func settingInfos(params []param.Param) []settingInfo {
	var infos []settingInfo
	for _, p := range params {
		infos = append(infos, settingInfo{p.Name, p.Wanted(), p.Default, p.Doc})
	}
	return infos
}

func writeSettings(w io.Writer, infos []settingInfo) {
	for _, s := range infos {
		fmt.Fprintf(w, "  %-20s  %s\n  %-20s  %s; default %s\n", s.Key, s.Doc, "", s.Values, s.Default)
	}
}
