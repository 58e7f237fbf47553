package demo

// listMethod is the call of StoredVolumes. No other program in the cluster calls it.
const listMethod = "ListVolumes"
