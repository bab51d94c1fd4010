package store

func init() { roundSize, maxFound, newestStories = 60, 150, 20 }
