package store

func init() { roundRead, maxFound, newestStories = 60, 150, 20 }
