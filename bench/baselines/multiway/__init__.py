"""(room to be described)"""
