package transfer

// Names are the tables that are moved.
var Names = names
