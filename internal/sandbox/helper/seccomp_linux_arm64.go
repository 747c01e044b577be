package helper

const sysSeccomp = 277
