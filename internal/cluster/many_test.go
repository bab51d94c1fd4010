//go:build !stress

package cluster_test

const manyProjects = 3_000
