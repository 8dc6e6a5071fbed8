// Package datasetcmd has the commands of datasets and data files: they import, show, inspect, convert and generate.
package datasetcmd

// Cmd is `coppice dataset`.
type Cmd struct {
	Import   importCmd   `cmd:"" help:"Import a data file into a cluster."`
	List     listCmd     `cmd:"" help:"List the datasets of a cluster."`
	Show     showCmd     `cmd:"" help:"Describe a dataset of a cluster."`
	Inspect  inspectCmd  `cmd:"" help:"Describe a data file and warn of possible mistakes; nothing is imported."`
	Share    shareCmd    `cmd:"" help:"Let all users of a cluster read one of your datasets."`
	Delete   deleteCmd   `cmd:"" help:"Delete a dataset of a cluster; refused while a job needs the dataset."`
	Convert  convertCmd  `cmd:"" help:"Write a data file as .npz, without changes to its dataset."`
	Generate generateCmd `cmd:"" help:"Write a generated dataset to a file."`
	Patches  patchesCmd  `cmd:"" help:"Cut images with a class for each pixel into patches; each patch is a sample."`
}
