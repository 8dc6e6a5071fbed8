package ndf_test

import (
	"testing"

	"github.com/coppice-ldl/coppice/dataset"
	"github.com/coppice-ldl/coppice/dataset/patches"
	"github.com/coppice-ldl/coppice/harness/testkit/datatest"
)

// trainImages is how many of the images of textures are trained on: the first ones.
const trainImages = 40

// textured returns the patches of textures, 9 x 9 pixels every 2: the images from trainImages on are test images.
func textured(t testing.TB, seed uint64) *problem {
	t.Helper()
	all, err := patches.New(patches.Textures(seed), patches.Options{Cut: patches.Cut{Size: 9, Stride: 2}})
	if err != nil {
		t.Fatal(err)
	}
	m, shards := datatest.Build(t, all.Rows(0, all.Images()))
	p := &problem{manifest: m, shards: shards, roles: make([]dataset.Roles, m.Rows)}
	for row := range p.roles {
		p.roles[row] = dataset.Train
		if row >= all.Rows(0, trainImages).Info().Rows {
			p.roles[row] = dataset.Test
		}
	}
	return p
}
