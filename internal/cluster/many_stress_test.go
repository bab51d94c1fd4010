//go:build stress

package cluster_test

const manyProjects = 100_000

// manyDuties are on a real database.
const manyDuties = 100_000
