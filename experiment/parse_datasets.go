package experiment

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/coppice-ldl/coppice/algorithms/kit/param"
	"github.com/coppice-ldl/coppice/internal/yamltree"
	"github.com/coppice-ldl/coppice/protocol"
)

// datasetKeys are the keys of a dataset that say nothing of how its file is read.
var datasetKeys = []string{"file", "dataset", "name", "folds"}

// ReadingKeys are the keys of a dataset that say how its file is read: the flags of train.
var ReadingKeys = []string{
	"labels", "label_columns", "label_prefix", "names", "row_names", "header", "feature_columns", "drop", "categories", "delimiter", "decimal", "thousands", "encoding", "missing",
	"features_variable", "zero_based", "data_format", "sigma", "range", "values", "intervals", "groups", "labels_variable", "labels_file", "normalize", "tolerance",
}

func (s *parser) dataset(n ast.Node, common Folds) Dataset {
	d := Dataset{Folds: common, At: placeOf(n)}
	if file, ok := yamltree.Scalar(n); ok {
		d.File = file
	} else if !s.try(func() {
		for _, e := range s.mapping(n, "a dataset", slices.Concat(datasetKeys, ReadingKeys)) {
			s.try(func() {
				switch e.key {
				case "file":
					d.File = s.text(e)
				case "dataset":
					d.On = s.text(e)
				case "name":
					d.Name = s.text(e)
				case "folds":
					d.Folds = s.folds(e)
				default:
					d.Options = append(d.Options, param.Pair{Key: e.key, Value: strings.Join(s.values(e), ",")})
				}
			})
		}
	}) {
		panic(mistake{})
	}
	switch {
	case (d.File == "") == (d.On == ""):
		s.fail(d.At, "a dataset is a file (key file) or a dataset on the cluster (key dataset): give exactly one of the two keys")
	case d.On != "" && len(d.Options) > 0:
		s.fail(d.At, "%s applies only to a file; a dataset on the cluster was read when it was imported", d.Options[0].Key)
	case d.Name == "" && d.On != "":
		d.Name = d.On
	case d.Name == "":
		d.Name = strings.TrimSuffix(d.File[strings.LastIndexAny(d.File, `/\`)+1:], ".gz")
		if dot := strings.LastIndexByte(d.Name, '.'); dot > 0 {
			d.Name = d.Name[:dot]
		}
	}
	if err := protocol.CheckName(d.Name); err != nil {
		s.fail(d.At, "the dataset's name %q: %v; give the dataset another name with the key name", d.Name, err)
	}
	if len(d.Name) > maxName/2 {
		s.fail(d.At, "the dataset's name %q has %d characters, want at most %d; give the dataset another name with the key name", d.Name, len(d.Name), maxName/2)
	}
	return d
}
