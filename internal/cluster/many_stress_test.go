//go:build stress

package cluster_test

const manyProjects = 100_000
