package patches

import (
	"github.com/coppice-ldl/coppice/dataset/images"
)

// Set is images with a map of classes each. It gives the same at each reading.
type Set interface {
	// Name describes the set, for messages; it may be empty.
	Name() string
	// Len is the number of images.
	Len() int
	// NameOf is the name of image i.
	NameOf(i int) string
	// Image reads image i; all have as many channels as Channels says.
	Image(i int) (*images.Image, error)
	// Map reads the classes of image i, whose size is the image's.
	Map(i int) (*images.Map, error)
	// Channels is the number of channels of the images.
	Channels() int
}
