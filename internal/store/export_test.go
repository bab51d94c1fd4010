package store

func init() { roundRead, maxFound = 60, 150 }
