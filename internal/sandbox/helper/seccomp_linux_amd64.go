package helper

const sysSeccomp = 317
